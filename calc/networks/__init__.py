"""Operations and traffic of a pass of a network, a module for each kind of network."""
