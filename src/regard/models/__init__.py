"""Every network of the package, behind one contract."""
