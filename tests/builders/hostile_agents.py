"""Agents that break limits, stay behind, or leave odd things in their memory."""

import os
import time
from pathlib import Path

FINISH = '{"tool": "finish", "arguments": {"p": 0.5}}'


class Hostile:
    """Plays along until it attacks in its first act, then finishes."""

    def reset(self, brief, tools, memory_dir):
        """Keep the folder."""
        self.folder = Path(memory_dir)

    def act(self, observation, info):
        """Attack, then finish."""
        self.attack()
        return FINISH

    def attack(self):
        """Do nothing."""

    def close(self):
        """Do nothing."""


class ForkBomb(Hostile):
    """Starts processes without end."""

    def attack(self):
        """Fork until that is refused, and wait."""
        for _ in range(2000):
            if os.fork() == 0:
                time.sleep(60)
        time.sleep(60)


class Eater(Hostile):
    """Takes memory in many processes, each below the limit of one."""

    def attack(self):
        """Fill 16 times 64 MiB."""
        for _ in range(16):
            if os.fork() == 0:
                kept = bytearray(os.urandom(1 << 20)) * 64
                time.sleep(60 + len(kept) * 0)
        time.sleep(60)


class Glutton(Hostile):
    """Takes all memory in one process."""

    def attack(self):
        """Ask for 64 GiB."""
        bytearray(64 << 30)


class Spinner(Hostile):
    """Uses its CPU up."""

    def attack(self):
        """Loop."""
        while True:
            pass


class Stayer(Hostile):
    """Leaves a process of its own session behind."""

    def attack(self):
        """Fork twice, and keep a file's date young."""
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True:
                    (self.folder / "alive").write_text(str(time.monotonic()))
                    time.sleep(0.01)
            os._exit(0)
        time.sleep(0.2)


class Pipe(Hostile):
    """Leaves a FIFO in its memory."""

    def attack(self):
        """Make it."""
        os.mkfifo(self.folder / "pipe")


class Sparse(Hostile):
    """Makes a file of 1 TB."""

    def attack(self):
        """Make it."""
        with (self.folder / "huge").open("wb") as file:
            file.truncate(1 << 40)


class Deep(Hostile):
    """Makes 2,500 folders, each in the one before."""

    def attack(self):
        """Make them."""
        os.chdir(self.folder)
        for _ in range(2500):
            os.mkdir("d")
            os.chdir("d")
        time.sleep(2)


class Remover(Hostile):
    """Removes its memory folder."""

    def attack(self):
        """Remove it, if that is possible."""
        try:
            self.folder.rmdir()
        except OSError:
            (self.folder / "link").symlink_to("/")
