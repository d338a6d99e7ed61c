"""What must hold, judged without the code under test."""
