"""The documentation site: pages of the repository, API and command line, built by Sphinx."""
