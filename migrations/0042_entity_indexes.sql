-- Pages about one entity read what stands below it, its own tokens, and who acts for it: not everybody's.
create index entities_by_parent on entities (parent_id);
create index access_tokens_by_entity on access_tokens using gin (entities);
create index staff_by_entity on staff using gin (entities);
