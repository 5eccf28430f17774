"""Models of one operator with everything about them turned, run through the delegates: what native code does not survive must not reach it."""
