"""Testing: what ships for the tests of those who extend Quipu."""
