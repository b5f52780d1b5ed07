-- The look at a call before anything is written, and the keys for what is reserved. They
-- are :exec because of what is generated only their text and the order of their
-- parameters are used.
--
-- Each holds the search_path against the one that its connection was given, as a pooler
-- may have given its session away since: it then does nothing. What is called is
-- qualified, and given the very types that the server's function takes: nobody's fits
-- better.

-- name: NextOperationKeys :exec
-- NextOperationKeys takes keys for operations, which the digests of their events bind.
SELECT pg_catalog.nextval(CAST(pg_catalog.pg_get_serial_sequence('operations', 'operation_pk') AS regclass)) AS operation_pk
FROM pg_catalog.generate_series(CAST(1 AS BIGINT), CAST(@keys AS BIGINT))
WHERE pg_catalog.current_setting('search_path') = CAST(@search_path AS TEXT);

-- name: LookupOnce :exec
-- LookupOnce is Lookup and LookupFree in one, and always one row: what there is not
-- is null. The scope is not repeated. A snapshot has an operation or, once it was
-- pruned, its tombstone. Who reads it holds the search_path, which is quicker.
SELECT
    operations.operation_pk, operations.request_sha256, operations.arguments_json,
    operations.input_schema_revision, operations.output_schema_revision, operations.effect_revision,
    operations.handler_revision, operations.producer_revision, operations.policy_revision,
    operations.approval_id, operations.approver_id, operations.approval_digest, operations.approval_expires_at,
    operations.approved_at, operations.first_operation_id, operations.first_call_id,
    operations.first_response_id, operations.first_provider, operations.first_api_family,
    operations.first_adapter_revision, operations.status_ref, operations.state, operations.created_at,
    operations.updated_at, operations.completed_at, operations.reason, operations.row_digest, operations.effect_kind,
    local_receipts.operation_pk AS receipt_of, local_receipts.receipt_id, local_receipts.downstream_request_id,
    local_receipts.request_sha256 AS receipt_request, local_receipts.result_json,
    local_receipts.producer_revision AS receipt_producer, local_receipts.resource_revision,
    local_receipts.observed_at, local_receipts.effect_revision AS receipt_effect,
    local_receipts.reconciled_at, local_receipts.row_digest AS receipt_digest,
    (SELECT outbox.attempt_count FROM outbox WHERE outbox.operation_pk = operations.operation_pk) AS attempts,
    (
        SELECT call_bindings.fingerprint_sha256 FROM call_bindings
        WHERE call_bindings.tenant_id = @tenant_id AND call_bindings.subject_id = @subject_id
            AND call_bindings.provider = @provider AND call_bindings.api_family = @api_family
            AND call_bindings.response_id = @response_id AND call_bindings.call_id = @call_id
    ) AS fingerprint,
    CASE WHEN operations.operation_pk IS NULL THEN (
        SELECT COUNT(*) FROM tombstones
        WHERE tombstones.tenant_id = @tenant_id AND tombstones.subject_id = @subject_id
            AND tombstones.tool_name = @tool_name AND tombstones.idempotency_key = @idempotency_key
    ) END AS tombstones, pg_catalog.current_setting('search_path') AS search_path
FROM (SELECT 1 AS one) AS call
LEFT JOIN operations ON operations.tenant_id = @tenant_id AND operations.subject_id = @subject_id
    AND operations.tool_name = @tool_name AND operations.idempotency_key = @idempotency_key
LEFT JOIN local_receipts ON local_receipts.operation_pk = operations.operation_pk;

-- name: LookupMany :exec
-- LookupMany is LookupOnce for many calls: a row for each, with its place among them,
-- and none at all in a session with another search_path. The parameters are the texts
-- of arrays, of one length.
--
-- What is LATERAL with an OFFSET is looked up call by call: the server can neither join
-- it otherwise nor read a table whole for it, where enable_seqscan is off. A plan that it
-- has made for an empty ledger is then right for a large one.
SELECT
    operations.operation_pk, operations.request_sha256, operations.arguments_json,
    operations.input_schema_revision, operations.output_schema_revision, operations.effect_revision,
    operations.handler_revision, operations.producer_revision, operations.policy_revision,
    operations.approval_id, operations.approver_id, operations.approval_digest, operations.approval_expires_at,
    operations.approved_at, operations.first_operation_id, operations.first_call_id,
    operations.first_response_id, operations.first_provider, operations.first_api_family,
    operations.first_adapter_revision, operations.status_ref, operations.state, operations.created_at,
    operations.updated_at, operations.completed_at, operations.reason, operations.row_digest, operations.effect_kind,
    local_receipts.operation_pk AS receipt_of, local_receipts.receipt_id, local_receipts.downstream_request_id,
    local_receipts.request_sha256 AS receipt_request, local_receipts.result_json,
    local_receipts.producer_revision AS receipt_producer, local_receipts.resource_revision,
    local_receipts.observed_at, local_receipts.effect_revision AS receipt_effect,
    local_receipts.reconciled_at, local_receipts.row_digest AS receipt_digest,
    (SELECT outbox.attempt_count FROM outbox WHERE outbox.operation_pk = operations.operation_pk) AS attempts,
    (
        SELECT call_bindings.fingerprint_sha256 FROM call_bindings
        WHERE call_bindings.tenant_id = call.tenant_id AND call_bindings.subject_id = call.subject_id
            AND call_bindings.provider = call.provider AND call_bindings.api_family = call.api_family
            AND call_bindings.response_id = call.response_id AND call_bindings.call_id = call.call_id
    ) AS fingerprint,
    CASE WHEN operations.operation_pk IS NULL THEN (
        SELECT COUNT(*) FROM tombstones
        WHERE tombstones.tenant_id = call.tenant_id AND tombstones.subject_id = call.subject_id
            AND tombstones.tool_name = call.tool_name AND tombstones.idempotency_key = call.idempotency_key
    ) END AS tombstones, call.place
FROM (
    SELECT
        pg_catalog.unnest(CAST(CAST(@tenant_ids AS TEXT) AS TEXT[])) AS tenant_id,
        pg_catalog.unnest(CAST(CAST(@subject_ids AS TEXT) AS TEXT[])) AS subject_id,
        pg_catalog.unnest(CAST(CAST(@tool_names AS TEXT) AS TEXT[])) AS tool_name,
        pg_catalog.unnest(CAST(CAST(@idempotency_keys AS TEXT) AS TEXT[])) AS idempotency_key,
        pg_catalog.unnest(CAST(CAST(@providers AS TEXT) AS TEXT[])) AS provider,
        pg_catalog.unnest(CAST(CAST(@api_families AS TEXT) AS TEXT[])) AS api_family,
        pg_catalog.unnest(CAST(CAST(@response_ids AS TEXT) AS TEXT[])) AS response_id,
        pg_catalog.unnest(CAST(CAST(@call_ids AS TEXT) AS TEXT[])) AS call_id,
        pg_catalog.generate_series(CAST(1 AS BIGINT), CAST(@calls AS BIGINT)) AS place
) AS call
LEFT JOIN LATERAL (
    SELECT * FROM operations
    WHERE operations.tenant_id = call.tenant_id AND operations.subject_id = call.subject_id
        AND operations.tool_name = call.tool_name AND operations.idempotency_key = call.idempotency_key
    OFFSET 0
) AS operations ON true
LEFT JOIN LATERAL (
    SELECT * FROM local_receipts WHERE local_receipts.operation_pk = operations.operation_pk OFFSET 0
) AS local_receipts ON true
WHERE pg_catalog.current_setting('search_path') = CAST(@search_path AS TEXT);
