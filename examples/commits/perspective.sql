-- The tree that the commits are imported to, and its perspective.
select rewind.create_tree('commits');
select rewind.create_perspective('commit_history', 'commits', 'examples.apply_commit(jsonb, rewind.event)');
