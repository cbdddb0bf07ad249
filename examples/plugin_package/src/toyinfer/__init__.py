"""What a package outside of zerostride adds to it; made up."""
