"""Import of Qlik projects and Replicate tasks: what is translated, and each loss with its place."""
