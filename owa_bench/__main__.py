"""Entry point of `owa-bench` and `python -m owa_bench`."""

from owa_bench.cli.app import main

if __name__ == "__main__":
    main()
