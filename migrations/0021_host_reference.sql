-- Payments that an acquirer knows by a number of its own (DE37): its reports name them by it. Others have no entry.
create index answers_host_reference on answers (merchant_id, substring(reply from '"hostReference":"([^"]+)"')) where reply like '%"hostReference"%';
