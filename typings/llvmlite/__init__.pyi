# The little of llvmlite that this project uses.
