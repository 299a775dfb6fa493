"""Reporting: from records to tables and figures. Selection and layout; nothing is computed that a record could hold."""
