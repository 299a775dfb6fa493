"""From records to tables and figures. Selection and layout: nothing is computed here that a record could hold."""
