"""The documentation site: pages made from the code, and links between files of the repository and pages.

mkdocs reads mkdocs.yml, which names the modules here: `generate` makes the reference, the pages of the packages and the navigation,
`links` is a hook that turns links to files of the repository into links to their pages.
"""
