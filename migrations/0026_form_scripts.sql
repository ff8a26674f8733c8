-- The scripts of the payment form, by their hash. A checkout in progress goes on with the script that its shop's page names, also when the gateway
-- was renewed meanwhile, and whichever process of which release is asked for it. A release that changes a script leaves two rows of some ten
-- kilobytes; nothing erases them, because links to pay may live long.

create table form_scripts (
  hash    text not null,        -- first 32 hex characters of the content's SHA-256
  name    text not null,
  content text not null,
  made_at timestamptz not null, -- real time of the first process that served it
  constraint form_scripts_pkey primary key (hash)
);
