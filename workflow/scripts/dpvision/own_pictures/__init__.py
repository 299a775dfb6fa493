"""`python -m dpvision try`: a paper for a folder of pictures, written to own/ and deleted with all copies."""
