-- Each attempt to put a file on a server writes a part of its own, named by this id: who has lost the work sees it before the part gets the file's name, and who
-- comes next takes away what was left.
alter table owed_files add column part_id uuid;
