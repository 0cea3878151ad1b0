-- Comes before everything else: the table that records migrations is in it.
create schema rewind;
