-- What a digest is made of is not checked again where it is stored: the digest of the
-- row covers it, and the audit reads it. Every such check is a pattern, which the
-- server parses anew for each statement.

-- +goose Up
ALTER TABLE call_bindings
    DROP CONSTRAINT call_bindings_fingerprint,
    DROP CONSTRAINT call_bindings_status_ref,
    ADD CONSTRAINT call_bindings_fingerprint CHECK (length(fingerprint_sha256) = 64),
    ADD CONSTRAINT call_bindings_status_ref
        CHECK (status_ref = '' OR (length(status_ref) = 39 AND substr(status_ref, 1, 7) = 'status_'));

ALTER TABLE operations
    DROP CONSTRAINT operations_request,
    DROP CONSTRAINT operations_approval_digest,
    DROP CONSTRAINT operations_status_ref,
    ADD CONSTRAINT operations_request CHECK (length(request_sha256) = 64),
    ADD CONSTRAINT operations_approval_digest CHECK (length(approval_digest) = 64),
    ADD CONSTRAINT operations_status_ref
        CHECK (length(status_ref) = 39 AND substr(status_ref, 1, 7) = 'status_');

ALTER TABLE downstream_receipts
    DROP CONSTRAINT downstream_receipts_request,
    ADD CONSTRAINT downstream_receipts_request CHECK (length(request_sha256) = 64);

ALTER TABLE local_receipts
    DROP CONSTRAINT local_receipts_request,
    ADD CONSTRAINT local_receipts_request CHECK (length(request_sha256) = 64);

-- +goose Down
-- There is no way down: it would drop evidence. This fails on purpose, and leaves
-- everything as it is.
SELECT a_ledger_has_no_way_down;
