"""Answer problems under every condition, grade and keep the answers, and say what they show."""
