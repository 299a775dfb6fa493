"""One file that holds a scale's results, and all that they rest on but the data themselves.

README.md               what it is, for somebody who has the archive alone
manifest-sha256.txt     the SHA-256 of every other file (sha256sum --check reads it)
ro-crate-metadata.json  what is what, as a Workflow Run RO-Crate
archive.json            name, version, commit, and what in the source is not as committed
config.json             the configuration that was resolved: scale and papers
plan.json               every spec, by name, and how things are called
results/                tables, figures, records, logs and benchmarks, where the pipeline puts them
source/                 the source, with the lock and the environments; source.json proves it
"""
