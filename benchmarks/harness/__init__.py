"""What the benchmarks share: data, sides (sapwood and its peers), measurement in a subprocess, tables."""
