-- What a dispatch asks and writes, each as one statement. Those of several callers
-- may share a transaction: each has a snapshot of its own, and sees what those
-- before it have written. A statement that writes stores all of its rows or none;
-- where it stores none, the runtime's own transaction says why. Every reason for
-- which it may store them is in its own WHERE, or a unique index, so READ COMMITTED
-- is enough. They are :exec because of what is generated only their text and the
-- order of their parameters are used.
--
-- Each holds the search_path against the one that its connection was given, as a
-- pooler may have given its session away since: it then does nothing, and the
-- transaction that comes after it sets its own. What is called is qualified, and given
-- the very types that the server's function takes: nobody's fits better.

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

-- name: Reserve :exec
-- Reserve takes a scope for an approved intent with its event, and binds the call
-- identity; no row means that the scope is taken, or was. It returns the key for
-- the next operation, to save asking for it.
--
-- Of two that want one scope, the second waits at the unique index for the first,
-- and then inserts nothing. A call identity that is bound fails the statement: it
-- has no ON CONFLICT, because an operation without its binding must not remain.
-- The transaction binds the call first: where the same call comes both ways at
-- once, the server may have to end one of the two, which is then repeated.
-- What is pruned meanwhile is either still there in the statement's snapshot, or
-- has its tombstone in it; what is inserted meanwhile is too young to be pruned.
--
-- A paused tool takes nothing that an attempt would follow at once: what waits for a
-- worker may wait.
--
-- The rows are for a time of the server's clock. Where that is another there is no
-- row; where it has passed while the statement waited, an event without an id
-- fails it.
WITH taken AS (
    INSERT INTO operations (
        operation_pk, tenant_id, subject_id, tool_name, idempotency_key, request_sha256, arguments_json,
        input_schema_revision, output_schema_revision, effect_revision, handler_revision,
        producer_revision, policy_revision, approval_id, approver_id, approval_digest,
        approval_expires_at, approved_at, first_operation_id, first_call_id, first_response_id,
        first_provider, first_api_family, first_adapter_revision, status_ref, state,
        created_at, updated_at, completed_at, reason, row_digest, effect_kind
    )
    SELECT
        @operation_pk, @tenant_id, @subject_id, @tool_name, @idempotency_key, @request_sha256, @arguments_json,
        @input_schema_revision, @output_schema_revision, @effect_revision, @handler_revision,
        @producer_revision, @policy_revision, @approval_id, @approver_id, @approval_digest,
        @approval_expires_at, @approved_at, @first_operation_id, @first_call_id, @first_response_id,
        @first_provider, @first_api_family, @first_adapter_revision, @status_ref, @state,
        @created_at, @updated_at, @completed_at, @reason, @row_digest, @effect_kind
    WHERE pg_catalog.current_setting('search_path') = CAST(@search_path AS TEXT)
    AND EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) >= CAST(@valid_from AS BIGINT)
    AND EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) < CAST(@valid_until AS BIGINT)
    AND NOT EXISTS (
        SELECT 1 FROM tombstones
        WHERE tombstones.tenant_id = @tenant_id AND tombstones.subject_id = @subject_id
            AND tombstones.tool_name = @tool_name AND tombstones.idempotency_key = @idempotency_key
    ) AND NOT EXISTS (
        SELECT 1 FROM operations AS present
        WHERE present.tenant_id = @tenant_id AND present.subject_id = @subject_id
            AND present.tool_name = @tool_name AND present.idempotency_key = @idempotency_key
    ) AND (
        CAST(@event_state AS TEXT) = 'pending'
        OR NOT EXISTS (SELECT 1 FROM paused_tools WHERE paused_tools.tool_name = @tool_name)
    )
    ON CONFLICT (tenant_id, subject_id, tool_name, idempotency_key) DO NOTHING
    RETURNING operations.operation_pk
), event AS (
    INSERT INTO outbox (
        operation_pk, event_id, payload_json, state, lease_owner, lease_until,
        attempt_count, created_at, updated_at, row_digest, next_attempt_at, lane
    )
    SELECT
        taken.operation_pk,
        CASE WHEN EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) < CAST(@valid_until AS BIGINT) THEN CAST(@event_id AS TEXT) END,
        @payload_json, @event_state, @lease_owner, @lease_until,
        @attempt_count, @event_created_at, @event_updated_at, @event_digest, @next_attempt_at, @lane
    FROM taken
), binding AS (
    INSERT INTO call_bindings (
        tenant_id, subject_id, provider, api_family, response_id, call_id,
        fingerprint_sha256, created_at, status_ref, row_digest
    )
    SELECT
        @tenant_id, @subject_id, @provider, @api_family, @response_id, @call_id,
        @fingerprint_sha256, @bound_at, @bound_ref, @binding_digest
    FROM taken
)
SELECT pg_catalog.nextval(CAST(pg_catalog.pg_get_serial_sequence('operations', 'operation_pk') AS regclass)) AS next_key
FROM taken;

-- name: Commit :exec
-- Commit accepts a receipt and ends the operation with its event and attempt; no
-- row means that one of the two is not what the caller has read in every column.
-- A scope or an operation that has a receipt fails the statement.
--
-- Both rows are locked first. Where somebody else moves them meanwhile (the lease
-- has run out), the lock waits for him and the WHERE is held against the rows as
-- he left them: only one of the two gets them. Nobody moves them afterwards.
-- They are locked in the order in which every transaction writes them.
WITH held AS (
    SELECT operations.operation_pk
    FROM outbox JOIN operations ON operations.operation_pk = outbox.operation_pk
    WHERE outbox.operation_pk = @operation_pk AND outbox.row_digest = @from_event_digest AND outbox.state = @from_event_state
        AND outbox.attempt_count = @attempt AND COALESCE(outbox.lease_owner, '') = CAST(@from_lease_owner AS TEXT)
        AND COALESCE(outbox.lease_until, 0) = CAST(@from_lease_until AS BIGINT)
        AND outbox.next_attempt_at = @from_next_attempt_at AND outbox.decisions = @from_decisions
        AND outbox.event_id = @event_id AND outbox.payload_json = @payload_json AND outbox.lane = @lane
        AND outbox.created_at = @event_created_at AND outbox.updated_at = @from_event_updated_at
        AND operations.row_digest = @from_digest AND operations.state = @from_state
        AND operations.updated_at = @from_updated_at AND operations.completed_at IS NULL AND operations.reason = @from_reason
        AND operations.tenant_id = @tenant_id AND operations.subject_id = @subject_id
        AND operations.tool_name = @tool_name AND operations.idempotency_key = @idempotency_key
        AND operations.request_sha256 = @request_sha256 AND operations.arguments_json = @arguments_json
        AND operations.input_schema_revision = @input_schema_revision
        AND operations.output_schema_revision = @output_schema_revision
        AND operations.effect_revision = @effect_revision AND operations.handler_revision = @handler_revision
        AND operations.producer_revision = @producer_revision AND operations.policy_revision = @policy_revision
        AND operations.approval_id = @approval_id AND operations.approver_id = @approver_id
        AND operations.approval_digest = @approval_digest AND operations.approval_expires_at = @approval_expires_at
        AND operations.approved_at = @approved_at
        AND operations.first_operation_id = @first_operation_id AND operations.first_call_id = @first_call_id
        AND operations.first_response_id = @first_response_id AND operations.first_provider = @first_provider
        AND operations.first_api_family = @first_api_family
        AND operations.first_adapter_revision = @first_adapter_revision
        AND operations.status_ref = @status_ref AND operations.created_at = @created_at
        AND operations.effect_kind = @effect_kind
        AND pg_catalog.current_setting('search_path') = CAST(@search_path AS TEXT)
    FOR NO KEY UPDATE
), moved AS (
    UPDATE outbox
    SET state = @event_state, lease_owner = NULL, lease_until = NULL,
        updated_at = @event_updated_at, row_digest = @event_digest, next_attempt_at = @next_attempt_at
    FROM held WHERE outbox.operation_pk = held.operation_pk
), tried AS (
    INSERT INTO attempts (operation_pk, attempt, worker_id, started_at, ended_at, outcome, row_digest)
    SELECT held.operation_pk, @attempt, @worker_id, @started_at, @ended_at, @outcome, @attempt_digest
    FROM held
    ON CONFLICT DO NOTHING
), ended AS (
    UPDATE operations
    SET state = @state, updated_at = @updated_at, completed_at = @completed_at, reason = @reason, row_digest = @row_digest
    FROM held WHERE operations.operation_pk = held.operation_pk
), observed AS (
    INSERT INTO downstream_receipts (
        tenant_id, subject_id, tool_name, idempotency_key, request_sha256, receipt_id,
        downstream_request_id, result_json, producer_revision, resource_revision,
        observed_at, effect_revision, committed_at, row_digest
    )
    SELECT
        @tenant_id, @subject_id, @tool_name, @idempotency_key, @request_sha256, @receipt_id,
        @downstream_request_id, @result_json, @receipt_producer, @resource_revision,
        @observed_at, @effect_revision, @committed_at, @downstream_digest
    FROM held
), accepted AS (
    INSERT INTO local_receipts (
        operation_pk, receipt_id, downstream_request_id, request_sha256, result_json,
        producer_revision, resource_revision, observed_at, effect_revision, reconciled_at, row_digest
    )
    SELECT
        held.operation_pk, @receipt_id, @downstream_request_id, @request_sha256, @result_json,
        @receipt_producer, @resource_revision, @observed_at, @effect_revision, @reconciled_at, @local_digest
    FROM held
)
SELECT held.operation_pk FROM held;
