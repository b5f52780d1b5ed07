-- name: ListMetadata :many
-- ListMetadata returns what the ledger says of itself.
SELECT * FROM runtime_metadata ORDER BY metadata_key;

-- name: CountRows :one
-- CountRows counts the five tables of the contract.
SELECT
    CAST((SELECT COUNT(*) FROM call_bindings) AS BIGINT) AS call_bindings,
    CAST((SELECT COUNT(*) FROM operations) AS BIGINT) AS operations,
    CAST((SELECT COUNT(*) FROM outbox) AS BIGINT) AS outbox,
    CAST((SELECT COUNT(*) FROM downstream_receipts) AS BIGINT) AS downstream_receipts,
    CAST((SELECT COUNT(*) FROM local_receipts) AS BIGINT) AS local_receipts;

-- name: InsertMetadata :execrows
-- InsertMetadata adds an entry, unless it is there.
INSERT INTO runtime_metadata (metadata_key, metadata_value)
VALUES (@metadata_key, @metadata_value) ON CONFLICT DO NOTHING;
