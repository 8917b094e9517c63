"""Groups asked of their coordinators, and groups that ended unseen."""
