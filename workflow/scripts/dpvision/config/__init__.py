"""Models of the files in config/: strict, one file a section, from which the JSON schemas are generated.

Every description here is the documentation of its key: editors show it, `python -m dpvision schema` writes it. Defaults are
the papers' values; what a paper does not say is decided here, with the reason. What is found by name (families of networks,
optimisers, schedules, kinds of artifact) has its options in its own file.
"""
