-- The checks of digests in words that every SQLite knows which can read the ledger:
-- unhex, which is quicker, came with 3.41, and the sqlite3 of Debian 12 is 3.40.
-- With it that one can neither check nor change a ledger. ltrim is as quick as a
-- pattern, and does not take a zero byte for the end.

-- +goose Up
ALTER TABLE call_bindings DROP CONSTRAINT call_bindings_fingerprint;
ALTER TABLE call_bindings ADD CONSTRAINT call_bindings_fingerprint
    CHECK (length(fingerprint_sha256) = 64 AND ltrim(fingerprint_sha256, '0123456789abcdef') = '');

ALTER TABLE call_bindings DROP CONSTRAINT call_bindings_status_ref;
ALTER TABLE call_bindings ADD CONSTRAINT call_bindings_status_ref
    CHECK (status_ref = '' OR (length(status_ref) = 39 AND substr(status_ref, 1, 7) = 'status_' AND ltrim(substr(status_ref, 8), '0123456789abcdef') = ''));

ALTER TABLE operations DROP CONSTRAINT operations_request;
ALTER TABLE operations ADD CONSTRAINT operations_request
    CHECK (length(request_sha256) = 64 AND ltrim(request_sha256, '0123456789abcdef') = '');

ALTER TABLE operations DROP CONSTRAINT operations_approval_digest;
ALTER TABLE operations ADD CONSTRAINT operations_approval_digest
    CHECK (length(approval_digest) = 64 AND ltrim(approval_digest, '0123456789abcdef') = '');

ALTER TABLE operations DROP CONSTRAINT operations_status_ref;
ALTER TABLE operations ADD CONSTRAINT operations_status_ref
    CHECK (length(status_ref) = 39 AND substr(status_ref, 1, 7) = 'status_' AND ltrim(substr(status_ref, 8), '0123456789abcdef') = '');

ALTER TABLE downstream_receipts DROP CONSTRAINT downstream_receipts_request;
ALTER TABLE downstream_receipts ADD CONSTRAINT downstream_receipts_request
    CHECK (length(request_sha256) = 64 AND ltrim(request_sha256, '0123456789abcdef') = '');

ALTER TABLE local_receipts DROP CONSTRAINT local_receipts_request;
ALTER TABLE local_receipts ADD CONSTRAINT local_receipts_request
    CHECK (length(request_sha256) = 64 AND ltrim(request_sha256, '0123456789abcdef') = '');

-- +goose Down
-- There is no way down: it would drop evidence. This fails on purpose, and leaves
-- everything as it is.
SELECT a_ledger_has_no_way_down;
