"""One generated company that several suites can stand on: people, customers, orders, papers."""
