-- What holds files of transfers holds capture files and order files too. Whose files are released is named as in due work, because an account has files of two kinds.
alter table installation rename column transfers_held to files_held;
alter table installation rename column transfers_released to files_released;
alter table installation rename column transfers_held_after to files_held_after;
update installation set files_released = array(
  select left(encode(sha256(convert_to('transfers ' || name, 'UTF8')), 'hex'), 32)
    from unnest(files_released) with ordinality as one (name, at) order by at);
