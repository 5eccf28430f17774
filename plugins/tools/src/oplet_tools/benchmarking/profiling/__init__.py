"""What makes profiles trustworthy: robust statistics, nodes' shapes and work, the machine's peaks, and the comparison with an earlier profile. Modules
here measure and compute; how it is shown is the business of others.
"""
