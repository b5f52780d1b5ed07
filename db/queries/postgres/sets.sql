-- Written by internal/setsql from the columns of the tables. DO NOT EDIT.
--
-- Each statement stores many operations, and answers for each: what cannot be stored of
-- one is filtered, and keeps nothing of another from being stored. Every reason for which
-- it may store something is in its own WHERE, or a unique index, so READ COMMITTED is
-- enough. The parameters are the texts of arrays, of one length, and the search_path for
-- which the statement is: in a session with another it does nothing. What is called is
-- qualified, and given the very types that the server's function takes: nobody's fits
-- better. What is LATERAL is looked up call by call, however large the tables have grown
-- since the server has made its plan. They are :exec because of what is generated only
-- their text and the order of their parameters are used.

-- name: ReserveMany :exec
-- ReserveMany takes the scopes of approved intents, each with its event and the identity
-- of the call that brought it. For each it says why it was not to be stored, or '', whether
-- it was, and a key for the next operation.
--
-- Of two that want one scope, the second waits at the unique index for the first, and then
-- inserts nothing. A call identity that is bound to the same is written again, because an
-- intent rests on it now, and a pruning that does not see that yet must not remove it; one
-- that is bound to something else lets nothing be inserted. What is pruned meanwhile is
-- either still there in the statement's snapshot, or has its tombstone in it; what is
-- inserted meanwhile is too young to be pruned. A paused tool takes nothing that an attempt
-- would follow at once: what waits for a worker may wait.
--
-- The rows are for a time of the server's clock. Where that has passed while the statement
-- waited, an event without an id fails it.
WITH call AS (
    SELECT
        pg_catalog.unnest(CAST(CAST(@o_operation_pk AS TEXT) AS BIGINT[])) AS o_operation_pk,
        pg_catalog.unnest(CAST(CAST(@o_tenant_id AS TEXT) AS TEXT[])) AS o_tenant_id,
        pg_catalog.unnest(CAST(CAST(@o_subject_id AS TEXT) AS TEXT[])) AS o_subject_id,
        pg_catalog.unnest(CAST(CAST(@o_tool_name AS TEXT) AS TEXT[])) AS o_tool_name,
        pg_catalog.unnest(CAST(CAST(@o_idempotency_key AS TEXT) AS TEXT[])) AS o_idempotency_key,
        pg_catalog.unnest(CAST(CAST(@o_request_sha256 AS TEXT) AS TEXT[])) AS o_request_sha256,
        pg_catalog.unnest(CAST(CAST(@o_arguments_json AS TEXT) AS TEXT[])) AS o_arguments_json,
        pg_catalog.unnest(CAST(CAST(@o_input_schema_revision AS TEXT) AS TEXT[])) AS o_input_schema_revision,
        pg_catalog.unnest(CAST(CAST(@o_output_schema_revision AS TEXT) AS TEXT[])) AS o_output_schema_revision,
        pg_catalog.unnest(CAST(CAST(@o_effect_revision AS TEXT) AS TEXT[])) AS o_effect_revision,
        pg_catalog.unnest(CAST(CAST(@o_handler_revision AS TEXT) AS TEXT[])) AS o_handler_revision,
        pg_catalog.unnest(CAST(CAST(@o_producer_revision AS TEXT) AS TEXT[])) AS o_producer_revision,
        pg_catalog.unnest(CAST(CAST(@o_policy_revision AS TEXT) AS TEXT[])) AS o_policy_revision,
        pg_catalog.unnest(CAST(CAST(@o_approval_id AS TEXT) AS TEXT[])) AS o_approval_id,
        pg_catalog.unnest(CAST(CAST(@o_approver_id AS TEXT) AS TEXT[])) AS o_approver_id,
        pg_catalog.unnest(CAST(CAST(@o_approval_digest AS TEXT) AS TEXT[])) AS o_approval_digest,
        pg_catalog.unnest(CAST(CAST(@o_approval_expires_at AS TEXT) AS BIGINT[])) AS o_approval_expires_at,
        pg_catalog.unnest(CAST(CAST(@o_approved_at AS TEXT) AS BIGINT[])) AS o_approved_at,
        pg_catalog.unnest(CAST(CAST(@o_first_operation_id AS TEXT) AS TEXT[])) AS o_first_operation_id,
        pg_catalog.unnest(CAST(CAST(@o_first_call_id AS TEXT) AS TEXT[])) AS o_first_call_id,
        pg_catalog.unnest(CAST(CAST(@o_first_response_id AS TEXT) AS TEXT[])) AS o_first_response_id,
        pg_catalog.unnest(CAST(CAST(@o_first_provider AS TEXT) AS TEXT[])) AS o_first_provider,
        pg_catalog.unnest(CAST(CAST(@o_first_api_family AS TEXT) AS TEXT[])) AS o_first_api_family,
        pg_catalog.unnest(CAST(CAST(@o_first_adapter_revision AS TEXT) AS TEXT[])) AS o_first_adapter_revision,
        pg_catalog.unnest(CAST(CAST(@o_status_ref AS TEXT) AS TEXT[])) AS o_status_ref,
        pg_catalog.unnest(CAST(CAST(@o_state AS TEXT) AS TEXT[])) AS o_state,
        pg_catalog.unnest(CAST(CAST(@o_created_at AS TEXT) AS BIGINT[])) AS o_created_at,
        pg_catalog.unnest(CAST(CAST(@o_updated_at AS TEXT) AS BIGINT[])) AS o_updated_at,
        pg_catalog.unnest(CAST(CAST(@o_completed_at AS TEXT) AS BIGINT[])) AS o_completed_at,
        pg_catalog.unnest(CAST(CAST(@o_reason AS TEXT) AS TEXT[])) AS o_reason,
        pg_catalog.unnest(CAST(CAST(@o_row_digest AS TEXT) AS BYTEA[])) AS o_row_digest,
        pg_catalog.unnest(CAST(CAST(@o_effect_kind AS TEXT) AS TEXT[])) AS o_effect_kind,
        pg_catalog.unnest(CAST(CAST(@e_operation_pk AS TEXT) AS BIGINT[])) AS e_operation_pk,
        pg_catalog.unnest(CAST(CAST(@e_event_id AS TEXT) AS TEXT[])) AS e_event_id,
        pg_catalog.unnest(CAST(CAST(@e_payload_json AS TEXT) AS TEXT[])) AS e_payload_json,
        pg_catalog.unnest(CAST(CAST(@e_state AS TEXT) AS TEXT[])) AS e_state,
        pg_catalog.unnest(CAST(CAST(@e_lease_owner AS TEXT) AS TEXT[])) AS e_lease_owner,
        pg_catalog.unnest(CAST(CAST(@e_lease_until AS TEXT) AS BIGINT[])) AS e_lease_until,
        pg_catalog.unnest(CAST(CAST(@e_attempt_count AS TEXT) AS BIGINT[])) AS e_attempt_count,
        pg_catalog.unnest(CAST(CAST(@e_created_at AS TEXT) AS BIGINT[])) AS e_created_at,
        pg_catalog.unnest(CAST(CAST(@e_updated_at AS TEXT) AS BIGINT[])) AS e_updated_at,
        pg_catalog.unnest(CAST(CAST(@e_row_digest AS TEXT) AS BYTEA[])) AS e_row_digest,
        pg_catalog.unnest(CAST(CAST(@e_next_attempt_at AS TEXT) AS BIGINT[])) AS e_next_attempt_at,
        pg_catalog.unnest(CAST(CAST(@e_lane AS TEXT) AS TEXT[])) AS e_lane,
        pg_catalog.unnest(CAST(CAST(@e_decisions AS TEXT) AS BIGINT[])) AS e_decisions,
        pg_catalog.unnest(CAST(CAST(@b_tenant_id AS TEXT) AS TEXT[])) AS b_tenant_id,
        pg_catalog.unnest(CAST(CAST(@b_subject_id AS TEXT) AS TEXT[])) AS b_subject_id,
        pg_catalog.unnest(CAST(CAST(@b_provider AS TEXT) AS TEXT[])) AS b_provider,
        pg_catalog.unnest(CAST(CAST(@b_api_family AS TEXT) AS TEXT[])) AS b_api_family,
        pg_catalog.unnest(CAST(CAST(@b_response_id AS TEXT) AS TEXT[])) AS b_response_id,
        pg_catalog.unnest(CAST(CAST(@b_call_id AS TEXT) AS TEXT[])) AS b_call_id,
        pg_catalog.unnest(CAST(CAST(@b_fingerprint_sha256 AS TEXT) AS TEXT[])) AS b_fingerprint_sha256,
        pg_catalog.unnest(CAST(CAST(@b_created_at AS TEXT) AS BIGINT[])) AS b_created_at,
        pg_catalog.unnest(CAST(CAST(@b_status_ref AS TEXT) AS TEXT[])) AS b_status_ref,
        pg_catalog.unnest(CAST(CAST(@b_row_digest AS TEXT) AS BYTEA[])) AS b_row_digest,
        pg_catalog.unnest(CAST(CAST(@valid_from AS TEXT) AS BIGINT[])) AS valid_from,
        pg_catalog.unnest(CAST(CAST(@valid_until AS TEXT) AS BIGINT[])) AS valid_until,
        pg_catalog.generate_series(CAST(1 AS BIGINT), CAST(@calls AS BIGINT)) AS place
), judged AS (
    SELECT call.*, CASE
        WHEN EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) < call.valid_from OR EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) >= call.valid_until THEN 'late'
        WHEN EXISTS (SELECT 1 FROM call_bindings WHERE call_bindings.tenant_id = call.b_tenant_id AND call_bindings.subject_id = call.b_subject_id AND call_bindings.provider = call.b_provider AND call_bindings.api_family = call.b_api_family AND call_bindings.response_id = call.b_response_id AND call_bindings.call_id = call.b_call_id AND call_bindings.fingerprint_sha256 <> call.b_fingerprint_sha256 OFFSET 0) THEN 'bound'
        WHEN EXISTS (SELECT 1 FROM tombstones WHERE tombstones.tenant_id = call.o_tenant_id AND tombstones.subject_id = call.o_subject_id AND tombstones.tool_name = call.o_tool_name AND tombstones.idempotency_key = call.o_idempotency_key OFFSET 0)
            OR EXISTS (SELECT 1 FROM operations WHERE operations.tenant_id = call.o_tenant_id AND operations.subject_id = call.o_subject_id AND operations.tool_name = call.o_tool_name AND operations.idempotency_key = call.o_idempotency_key OFFSET 0) THEN 'taken'
        WHEN call.e_state <> 'pending'
            AND EXISTS (SELECT 1 FROM paused_tools WHERE paused_tools.tool_name = call.o_tool_name OFFSET 0) THEN 'paused'
        ELSE '' END AS why
    FROM call
    WHERE pg_catalog.current_setting('search_path') = CAST(@search_path AS TEXT)
), free AS (
    SELECT * FROM judged WHERE judged.why = ''
), bound AS (
    INSERT INTO call_bindings (
        tenant_id, subject_id, provider, api_family, response_id, call_id,
        fingerprint_sha256, created_at, status_ref, row_digest
    )
    SELECT
        free.b_tenant_id, free.b_subject_id, free.b_provider, free.b_api_family, free.b_response_id, free.b_call_id,
        free.b_fingerprint_sha256, free.b_created_at, free.b_status_ref, free.b_row_digest
    FROM free
    ON CONFLICT (tenant_id, subject_id, provider, api_family, response_id, call_id)
    DO UPDATE SET status_ref = call_bindings.status_ref
    WHERE call_bindings.fingerprint_sha256 = EXCLUDED.fingerprint_sha256
    RETURNING call_bindings.tenant_id, call_bindings.subject_id, call_bindings.provider, call_bindings.api_family, call_bindings.response_id, call_bindings.call_id
), taken AS (
    INSERT INTO operations (
        operation_pk, tenant_id, subject_id, tool_name, idempotency_key, request_sha256,
        arguments_json, input_schema_revision, output_schema_revision, effect_revision, handler_revision, producer_revision,
        policy_revision, approval_id, approver_id, approval_digest, approval_expires_at, approved_at,
        first_operation_id, first_call_id, first_response_id, first_provider, first_api_family, first_adapter_revision,
        status_ref, state, created_at, updated_at, completed_at, reason,
        row_digest, effect_kind
    )
    SELECT
        free.o_operation_pk, free.o_tenant_id, free.o_subject_id, free.o_tool_name, free.o_idempotency_key, free.o_request_sha256,
        free.o_arguments_json, free.o_input_schema_revision, free.o_output_schema_revision, free.o_effect_revision, free.o_handler_revision, free.o_producer_revision,
        free.o_policy_revision, free.o_approval_id, free.o_approver_id, free.o_approval_digest, free.o_approval_expires_at, free.o_approved_at,
        free.o_first_operation_id, free.o_first_call_id, free.o_first_response_id, free.o_first_provider, free.o_first_api_family, free.o_first_adapter_revision,
        free.o_status_ref, free.o_state, free.o_created_at, free.o_updated_at, free.o_completed_at, free.o_reason,
        free.o_row_digest, free.o_effect_kind
    FROM free JOIN bound ON bound.tenant_id = free.b_tenant_id AND bound.subject_id = free.b_subject_id AND bound.provider = free.b_provider AND bound.api_family = free.b_api_family AND bound.response_id = free.b_response_id AND bound.call_id = free.b_call_id
    ON CONFLICT DO NOTHING
    RETURNING operations.operation_pk
), event AS (
    INSERT INTO outbox (
        operation_pk, event_id, payload_json, state, lease_owner, lease_until,
        attempt_count, created_at, updated_at, row_digest, next_attempt_at, lane,
        decisions
    )
    SELECT
        free.e_operation_pk, CASE WHEN EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) < free.valid_until THEN free.e_event_id END, free.e_payload_json, free.e_state, free.e_lease_owner, free.e_lease_until,
        free.e_attempt_count, free.e_created_at, free.e_updated_at, free.e_row_digest, free.e_next_attempt_at, free.e_lane,
        free.e_decisions
    FROM free JOIN taken ON taken.operation_pk = free.o_operation_pk
)
SELECT judged.place, judged.why, judged.o_operation_pk IN (SELECT taken.operation_pk FROM taken) AS stored,
    pg_catalog.nextval(CAST(pg_catalog.pg_get_serial_sequence('operations', 'operation_pk') AS regclass)) AS next_key
FROM judged;

-- name: ReserveOne :exec
-- ReserveOne is ReserveMany for a single call.
WITH call AS (
    SELECT
        CAST(@calls AS BIGINT) AS place
), judged AS (
    SELECT call.*, CASE
        WHEN EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) < CAST(CAST(@valid_from AS TEXT) AS BIGINT) OR EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) >= CAST(CAST(@valid_until AS TEXT) AS BIGINT) THEN 'late'
        WHEN EXISTS (SELECT 1 FROM call_bindings WHERE call_bindings.tenant_id = CAST(CAST(@b_tenant_id AS TEXT) AS TEXT) AND call_bindings.subject_id = CAST(CAST(@b_subject_id AS TEXT) AS TEXT) AND call_bindings.provider = CAST(CAST(@b_provider AS TEXT) AS TEXT) AND call_bindings.api_family = CAST(CAST(@b_api_family AS TEXT) AS TEXT) AND call_bindings.response_id = CAST(CAST(@b_response_id AS TEXT) AS TEXT) AND call_bindings.call_id = CAST(CAST(@b_call_id AS TEXT) AS TEXT) AND call_bindings.fingerprint_sha256 <> CAST(CAST(@b_fingerprint_sha256 AS TEXT) AS TEXT) OFFSET 0) THEN 'bound'
        WHEN EXISTS (SELECT 1 FROM tombstones WHERE tombstones.tenant_id = CAST(CAST(@o_tenant_id AS TEXT) AS TEXT) AND tombstones.subject_id = CAST(CAST(@o_subject_id AS TEXT) AS TEXT) AND tombstones.tool_name = CAST(CAST(@o_tool_name AS TEXT) AS TEXT) AND tombstones.idempotency_key = CAST(CAST(@o_idempotency_key AS TEXT) AS TEXT) OFFSET 0)
            OR EXISTS (SELECT 1 FROM operations WHERE operations.tenant_id = CAST(CAST(@o_tenant_id AS TEXT) AS TEXT) AND operations.subject_id = CAST(CAST(@o_subject_id AS TEXT) AS TEXT) AND operations.tool_name = CAST(CAST(@o_tool_name AS TEXT) AS TEXT) AND operations.idempotency_key = CAST(CAST(@o_idempotency_key AS TEXT) AS TEXT) OFFSET 0) THEN 'taken'
        WHEN CAST(CAST(@e_state AS TEXT) AS TEXT) <> 'pending'
            AND EXISTS (SELECT 1 FROM paused_tools WHERE paused_tools.tool_name = CAST(CAST(@o_tool_name AS TEXT) AS TEXT) OFFSET 0) THEN 'paused'
        ELSE '' END AS why
    FROM call
    WHERE pg_catalog.current_setting('search_path') = CAST(@search_path AS TEXT)
), free AS (
    SELECT * FROM judged WHERE judged.why = ''
), bound AS (
    INSERT INTO call_bindings (
        tenant_id, subject_id, provider, api_family, response_id, call_id,
        fingerprint_sha256, created_at, status_ref, row_digest
    )
    SELECT
        CAST(CAST(@b_tenant_id AS TEXT) AS TEXT), CAST(CAST(@b_subject_id AS TEXT) AS TEXT), CAST(CAST(@b_provider AS TEXT) AS TEXT), CAST(CAST(@b_api_family AS TEXT) AS TEXT), CAST(CAST(@b_response_id AS TEXT) AS TEXT), CAST(CAST(@b_call_id AS TEXT) AS TEXT),
        CAST(CAST(@b_fingerprint_sha256 AS TEXT) AS TEXT), CAST(CAST(@b_created_at AS TEXT) AS BIGINT), CAST(CAST(@b_status_ref AS TEXT) AS TEXT), CAST(CAST(@b_row_digest AS TEXT) AS BYTEA)
    FROM free
    ON CONFLICT (tenant_id, subject_id, provider, api_family, response_id, call_id)
    DO UPDATE SET status_ref = call_bindings.status_ref
    WHERE call_bindings.fingerprint_sha256 = EXCLUDED.fingerprint_sha256
    RETURNING call_bindings.tenant_id, call_bindings.subject_id, call_bindings.provider, call_bindings.api_family, call_bindings.response_id, call_bindings.call_id
), taken AS (
    INSERT INTO operations (
        operation_pk, tenant_id, subject_id, tool_name, idempotency_key, request_sha256,
        arguments_json, input_schema_revision, output_schema_revision, effect_revision, handler_revision, producer_revision,
        policy_revision, approval_id, approver_id, approval_digest, approval_expires_at, approved_at,
        first_operation_id, first_call_id, first_response_id, first_provider, first_api_family, first_adapter_revision,
        status_ref, state, created_at, updated_at, completed_at, reason,
        row_digest, effect_kind
    )
    SELECT
        CAST(CAST(@o_operation_pk AS TEXT) AS BIGINT), CAST(CAST(@o_tenant_id AS TEXT) AS TEXT), CAST(CAST(@o_subject_id AS TEXT) AS TEXT), CAST(CAST(@o_tool_name AS TEXT) AS TEXT), CAST(CAST(@o_idempotency_key AS TEXT) AS TEXT), CAST(CAST(@o_request_sha256 AS TEXT) AS TEXT),
        CAST(CAST(@o_arguments_json AS TEXT) AS TEXT), CAST(CAST(@o_input_schema_revision AS TEXT) AS TEXT), CAST(CAST(@o_output_schema_revision AS TEXT) AS TEXT), CAST(CAST(@o_effect_revision AS TEXT) AS TEXT), CAST(CAST(@o_handler_revision AS TEXT) AS TEXT), CAST(CAST(@o_producer_revision AS TEXT) AS TEXT),
        CAST(CAST(@o_policy_revision AS TEXT) AS TEXT), CAST(CAST(@o_approval_id AS TEXT) AS TEXT), CAST(CAST(@o_approver_id AS TEXT) AS TEXT), CAST(CAST(@o_approval_digest AS TEXT) AS TEXT), CAST(CAST(@o_approval_expires_at AS TEXT) AS BIGINT), CAST(CAST(@o_approved_at AS TEXT) AS BIGINT),
        CAST(CAST(@o_first_operation_id AS TEXT) AS TEXT), CAST(CAST(@o_first_call_id AS TEXT) AS TEXT), CAST(CAST(@o_first_response_id AS TEXT) AS TEXT), CAST(CAST(@o_first_provider AS TEXT) AS TEXT), CAST(CAST(@o_first_api_family AS TEXT) AS TEXT), CAST(CAST(@o_first_adapter_revision AS TEXT) AS TEXT),
        CAST(CAST(@o_status_ref AS TEXT) AS TEXT), CAST(CAST(@o_state AS TEXT) AS TEXT), CAST(CAST(@o_created_at AS TEXT) AS BIGINT), CAST(CAST(@o_updated_at AS TEXT) AS BIGINT), CAST(CAST(@o_completed_at AS TEXT) AS BIGINT), CAST(CAST(@o_reason AS TEXT) AS TEXT),
        CAST(CAST(@o_row_digest AS TEXT) AS BYTEA), CAST(CAST(@o_effect_kind AS TEXT) AS TEXT)
    FROM free JOIN bound ON bound.tenant_id = CAST(CAST(@b_tenant_id AS TEXT) AS TEXT) AND bound.subject_id = CAST(CAST(@b_subject_id AS TEXT) AS TEXT) AND bound.provider = CAST(CAST(@b_provider AS TEXT) AS TEXT) AND bound.api_family = CAST(CAST(@b_api_family AS TEXT) AS TEXT) AND bound.response_id = CAST(CAST(@b_response_id AS TEXT) AS TEXT) AND bound.call_id = CAST(CAST(@b_call_id AS TEXT) AS TEXT)
    ON CONFLICT DO NOTHING
    RETURNING operations.operation_pk
), event AS (
    INSERT INTO outbox (
        operation_pk, event_id, payload_json, state, lease_owner, lease_until,
        attempt_count, created_at, updated_at, row_digest, next_attempt_at, lane,
        decisions
    )
    SELECT
        CAST(CAST(@e_operation_pk AS TEXT) AS BIGINT), CASE WHEN EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) < CAST(CAST(@valid_until AS TEXT) AS BIGINT) THEN CAST(CAST(@e_event_id AS TEXT) AS TEXT) END, CAST(CAST(@e_payload_json AS TEXT) AS TEXT), CAST(CAST(@e_state AS TEXT) AS TEXT), CAST(CAST(@e_lease_owner AS TEXT) AS TEXT), CAST(CAST(@e_lease_until AS TEXT) AS BIGINT),
        CAST(CAST(@e_attempt_count AS TEXT) AS BIGINT), CAST(CAST(@e_created_at AS TEXT) AS BIGINT), CAST(CAST(@e_updated_at AS TEXT) AS BIGINT), CAST(CAST(@e_row_digest AS TEXT) AS BYTEA), CAST(CAST(@e_next_attempt_at AS TEXT) AS BIGINT), CAST(CAST(@e_lane AS TEXT) AS TEXT),
        CAST(CAST(@e_decisions AS TEXT) AS BIGINT)
    FROM free JOIN taken ON taken.operation_pk = CAST(CAST(@o_operation_pk AS TEXT) AS BIGINT)
)
SELECT judged.place, judged.why, CAST(CAST(@o_operation_pk AS TEXT) AS BIGINT) IN (SELECT taken.operation_pk FROM taken) AS stored,
    pg_catalog.nextval(CAST(pg_catalog.pg_get_serial_sequence('operations', 'operation_pk') AS regclass)) AS next_key
FROM judged;

-- name: MoveMany :exec
-- MoveMany moves operations and their events from the rows that were read, in every column,
-- to new ones. With a move go how an attempt has ended, a receipt as observed and as
-- accepted, and a place among the endings, where there are such. For each it says whether
-- it was stored.
--
-- The event is the gate: it is locked first. Where somebody else moves it meanwhile (the
-- lease has run out), the lock waits for him and the WHERE is held against the row as he
-- left it: only one of the two gets it. Nobody moves the two rows afterwards. A receipt
-- whose ids the ledger has already lets nothing be stored; one that comes at the very same
-- time fails the statement.
WITH call AS (
    SELECT
        pg_catalog.unnest(CAST(CAST(@f_operation_pk AS TEXT) AS BIGINT[])) AS f_operation_pk,
        pg_catalog.unnest(CAST(CAST(@f_tenant_id AS TEXT) AS TEXT[])) AS f_tenant_id,
        pg_catalog.unnest(CAST(CAST(@f_subject_id AS TEXT) AS TEXT[])) AS f_subject_id,
        pg_catalog.unnest(CAST(CAST(@f_tool_name AS TEXT) AS TEXT[])) AS f_tool_name,
        pg_catalog.unnest(CAST(CAST(@f_idempotency_key AS TEXT) AS TEXT[])) AS f_idempotency_key,
        pg_catalog.unnest(CAST(CAST(@f_request_sha256 AS TEXT) AS TEXT[])) AS f_request_sha256,
        pg_catalog.unnest(CAST(CAST(@f_arguments_json AS TEXT) AS TEXT[])) AS f_arguments_json,
        pg_catalog.unnest(CAST(CAST(@f_input_schema_revision AS TEXT) AS TEXT[])) AS f_input_schema_revision,
        pg_catalog.unnest(CAST(CAST(@f_output_schema_revision AS TEXT) AS TEXT[])) AS f_output_schema_revision,
        pg_catalog.unnest(CAST(CAST(@f_effect_revision AS TEXT) AS TEXT[])) AS f_effect_revision,
        pg_catalog.unnest(CAST(CAST(@f_handler_revision AS TEXT) AS TEXT[])) AS f_handler_revision,
        pg_catalog.unnest(CAST(CAST(@f_producer_revision AS TEXT) AS TEXT[])) AS f_producer_revision,
        pg_catalog.unnest(CAST(CAST(@f_policy_revision AS TEXT) AS TEXT[])) AS f_policy_revision,
        pg_catalog.unnest(CAST(CAST(@f_approval_id AS TEXT) AS TEXT[])) AS f_approval_id,
        pg_catalog.unnest(CAST(CAST(@f_approver_id AS TEXT) AS TEXT[])) AS f_approver_id,
        pg_catalog.unnest(CAST(CAST(@f_approval_digest AS TEXT) AS TEXT[])) AS f_approval_digest,
        pg_catalog.unnest(CAST(CAST(@f_approval_expires_at AS TEXT) AS BIGINT[])) AS f_approval_expires_at,
        pg_catalog.unnest(CAST(CAST(@f_approved_at AS TEXT) AS BIGINT[])) AS f_approved_at,
        pg_catalog.unnest(CAST(CAST(@f_first_operation_id AS TEXT) AS TEXT[])) AS f_first_operation_id,
        pg_catalog.unnest(CAST(CAST(@f_first_call_id AS TEXT) AS TEXT[])) AS f_first_call_id,
        pg_catalog.unnest(CAST(CAST(@f_first_response_id AS TEXT) AS TEXT[])) AS f_first_response_id,
        pg_catalog.unnest(CAST(CAST(@f_first_provider AS TEXT) AS TEXT[])) AS f_first_provider,
        pg_catalog.unnest(CAST(CAST(@f_first_api_family AS TEXT) AS TEXT[])) AS f_first_api_family,
        pg_catalog.unnest(CAST(CAST(@f_first_adapter_revision AS TEXT) AS TEXT[])) AS f_first_adapter_revision,
        pg_catalog.unnest(CAST(CAST(@f_status_ref AS TEXT) AS TEXT[])) AS f_status_ref,
        pg_catalog.unnest(CAST(CAST(@f_state AS TEXT) AS TEXT[])) AS f_state,
        pg_catalog.unnest(CAST(CAST(@f_created_at AS TEXT) AS BIGINT[])) AS f_created_at,
        pg_catalog.unnest(CAST(CAST(@f_updated_at AS TEXT) AS BIGINT[])) AS f_updated_at,
        pg_catalog.unnest(CAST(CAST(@f_completed_at AS TEXT) AS BIGINT[])) AS f_completed_at,
        pg_catalog.unnest(CAST(CAST(@f_reason AS TEXT) AS TEXT[])) AS f_reason,
        pg_catalog.unnest(CAST(CAST(@f_row_digest AS TEXT) AS BYTEA[])) AS f_row_digest,
        pg_catalog.unnest(CAST(CAST(@f_effect_kind AS TEXT) AS TEXT[])) AS f_effect_kind,
        pg_catalog.unnest(CAST(CAST(@g_operation_pk AS TEXT) AS BIGINT[])) AS g_operation_pk,
        pg_catalog.unnest(CAST(CAST(@g_event_id AS TEXT) AS TEXT[])) AS g_event_id,
        pg_catalog.unnest(CAST(CAST(@g_payload_json AS TEXT) AS TEXT[])) AS g_payload_json,
        pg_catalog.unnest(CAST(CAST(@g_state AS TEXT) AS TEXT[])) AS g_state,
        pg_catalog.unnest(CAST(CAST(@g_lease_owner AS TEXT) AS TEXT[])) AS g_lease_owner,
        pg_catalog.unnest(CAST(CAST(@g_lease_until AS TEXT) AS BIGINT[])) AS g_lease_until,
        pg_catalog.unnest(CAST(CAST(@g_attempt_count AS TEXT) AS BIGINT[])) AS g_attempt_count,
        pg_catalog.unnest(CAST(CAST(@g_created_at AS TEXT) AS BIGINT[])) AS g_created_at,
        pg_catalog.unnest(CAST(CAST(@g_updated_at AS TEXT) AS BIGINT[])) AS g_updated_at,
        pg_catalog.unnest(CAST(CAST(@g_row_digest AS TEXT) AS BYTEA[])) AS g_row_digest,
        pg_catalog.unnest(CAST(CAST(@g_next_attempt_at AS TEXT) AS BIGINT[])) AS g_next_attempt_at,
        pg_catalog.unnest(CAST(CAST(@g_lane AS TEXT) AS TEXT[])) AS g_lane,
        pg_catalog.unnest(CAST(CAST(@g_decisions AS TEXT) AS BIGINT[])) AS g_decisions,
        pg_catalog.unnest(CAST(CAST(@o_state AS TEXT) AS TEXT[])) AS o_state,
        pg_catalog.unnest(CAST(CAST(@o_updated_at AS TEXT) AS BIGINT[])) AS o_updated_at,
        pg_catalog.unnest(CAST(CAST(@o_completed_at AS TEXT) AS BIGINT[])) AS o_completed_at,
        pg_catalog.unnest(CAST(CAST(@o_reason AS TEXT) AS TEXT[])) AS o_reason,
        pg_catalog.unnest(CAST(CAST(@o_row_digest AS TEXT) AS BYTEA[])) AS o_row_digest,
        pg_catalog.unnest(CAST(CAST(@e_state AS TEXT) AS TEXT[])) AS e_state,
        pg_catalog.unnest(CAST(CAST(@e_lease_owner AS TEXT) AS TEXT[])) AS e_lease_owner,
        pg_catalog.unnest(CAST(CAST(@e_lease_until AS TEXT) AS BIGINT[])) AS e_lease_until,
        pg_catalog.unnest(CAST(CAST(@e_attempt_count AS TEXT) AS BIGINT[])) AS e_attempt_count,
        pg_catalog.unnest(CAST(CAST(@e_updated_at AS TEXT) AS BIGINT[])) AS e_updated_at,
        pg_catalog.unnest(CAST(CAST(@e_row_digest AS TEXT) AS BYTEA[])) AS e_row_digest,
        pg_catalog.unnest(CAST(CAST(@e_next_attempt_at AS TEXT) AS BIGINT[])) AS e_next_attempt_at,
        pg_catalog.unnest(CAST(CAST(@e_decisions AS TEXT) AS BIGINT[])) AS e_decisions,
        pg_catalog.unnest(CAST(CAST(@a_operation_pk AS TEXT) AS BIGINT[])) AS a_operation_pk,
        pg_catalog.unnest(CAST(CAST(@a_attempt AS TEXT) AS BIGINT[])) AS a_attempt,
        pg_catalog.unnest(CAST(CAST(@a_worker_id AS TEXT) AS TEXT[])) AS a_worker_id,
        pg_catalog.unnest(CAST(CAST(@a_started_at AS TEXT) AS BIGINT[])) AS a_started_at,
        pg_catalog.unnest(CAST(CAST(@a_ended_at AS TEXT) AS BIGINT[])) AS a_ended_at,
        pg_catalog.unnest(CAST(CAST(@a_outcome AS TEXT) AS TEXT[])) AS a_outcome,
        pg_catalog.unnest(CAST(CAST(@a_row_digest AS TEXT) AS BYTEA[])) AS a_row_digest,
        pg_catalog.unnest(CAST(CAST(@a_cause AS TEXT) AS TEXT[])) AS a_cause,
        pg_catalog.unnest(CAST(CAST(@d_tenant_id AS TEXT) AS TEXT[])) AS d_tenant_id,
        pg_catalog.unnest(CAST(CAST(@d_subject_id AS TEXT) AS TEXT[])) AS d_subject_id,
        pg_catalog.unnest(CAST(CAST(@d_tool_name AS TEXT) AS TEXT[])) AS d_tool_name,
        pg_catalog.unnest(CAST(CAST(@d_idempotency_key AS TEXT) AS TEXT[])) AS d_idempotency_key,
        pg_catalog.unnest(CAST(CAST(@d_request_sha256 AS TEXT) AS TEXT[])) AS d_request_sha256,
        pg_catalog.unnest(CAST(CAST(@d_receipt_id AS TEXT) AS TEXT[])) AS d_receipt_id,
        pg_catalog.unnest(CAST(CAST(@d_downstream_request_id AS TEXT) AS TEXT[])) AS d_downstream_request_id,
        pg_catalog.unnest(CAST(CAST(@d_result_json AS TEXT) AS TEXT[])) AS d_result_json,
        pg_catalog.unnest(CAST(CAST(@d_producer_revision AS TEXT) AS TEXT[])) AS d_producer_revision,
        pg_catalog.unnest(CAST(CAST(@d_resource_revision AS TEXT) AS TEXT[])) AS d_resource_revision,
        pg_catalog.unnest(CAST(CAST(@d_observed_at AS TEXT) AS TEXT[])) AS d_observed_at,
        pg_catalog.unnest(CAST(CAST(@d_effect_revision AS TEXT) AS TEXT[])) AS d_effect_revision,
        pg_catalog.unnest(CAST(CAST(@d_committed_at AS TEXT) AS BIGINT[])) AS d_committed_at,
        pg_catalog.unnest(CAST(CAST(@d_row_digest AS TEXT) AS BYTEA[])) AS d_row_digest,
        pg_catalog.unnest(CAST(CAST(@l_operation_pk AS TEXT) AS BIGINT[])) AS l_operation_pk,
        pg_catalog.unnest(CAST(CAST(@l_receipt_id AS TEXT) AS TEXT[])) AS l_receipt_id,
        pg_catalog.unnest(CAST(CAST(@l_downstream_request_id AS TEXT) AS TEXT[])) AS l_downstream_request_id,
        pg_catalog.unnest(CAST(CAST(@l_request_sha256 AS TEXT) AS TEXT[])) AS l_request_sha256,
        pg_catalog.unnest(CAST(CAST(@l_result_json AS TEXT) AS TEXT[])) AS l_result_json,
        pg_catalog.unnest(CAST(CAST(@l_producer_revision AS TEXT) AS TEXT[])) AS l_producer_revision,
        pg_catalog.unnest(CAST(CAST(@l_resource_revision AS TEXT) AS TEXT[])) AS l_resource_revision,
        pg_catalog.unnest(CAST(CAST(@l_observed_at AS TEXT) AS TEXT[])) AS l_observed_at,
        pg_catalog.unnest(CAST(CAST(@l_effect_revision AS TEXT) AS TEXT[])) AS l_effect_revision,
        pg_catalog.unnest(CAST(CAST(@l_reconciled_at AS TEXT) AS BIGINT[])) AS l_reconciled_at,
        pg_catalog.unnest(CAST(CAST(@l_row_digest AS TEXT) AS BYTEA[])) AS l_row_digest,
        pg_catalog.unnest(CAST(CAST(@n_status_ref AS TEXT) AS TEXT[])) AS n_status_ref,
        pg_catalog.unnest(CAST(CAST(@n_row_digest AS TEXT) AS BYTEA[])) AS n_row_digest,
        pg_catalog.generate_series(CAST(1 AS BIGINT), CAST(@calls AS BIGINT)) AS place
), held AS (
    SELECT call.* FROM call, LATERAL (
        SELECT outbox.operation_pk FROM outbox
        WHERE outbox.operation_pk = call.g_operation_pk
            AND outbox.event_id = call.g_event_id
            AND outbox.payload_json = call.g_payload_json
            AND outbox.state = call.g_state
            AND outbox.lease_owner IS NOT DISTINCT FROM call.g_lease_owner
            AND outbox.lease_until IS NOT DISTINCT FROM call.g_lease_until
            AND outbox.attempt_count = call.g_attempt_count
            AND outbox.created_at = call.g_created_at
            AND outbox.updated_at = call.g_updated_at
            AND outbox.row_digest = call.g_row_digest
            AND outbox.next_attempt_at = call.g_next_attempt_at
            AND outbox.lane = call.g_lane
            AND outbox.decisions = call.g_decisions
        FOR NO KEY UPDATE
    ) AS event, LATERAL (
        SELECT operations.operation_pk FROM operations
        WHERE event.operation_pk = operations.operation_pk
            AND operations.operation_pk = call.f_operation_pk
            AND operations.tenant_id = call.f_tenant_id
            AND operations.subject_id = call.f_subject_id
            AND operations.tool_name = call.f_tool_name
            AND operations.idempotency_key = call.f_idempotency_key
            AND operations.request_sha256 = call.f_request_sha256
            AND operations.arguments_json = call.f_arguments_json
            AND operations.input_schema_revision = call.f_input_schema_revision
            AND operations.output_schema_revision = call.f_output_schema_revision
            AND operations.effect_revision = call.f_effect_revision
            AND operations.handler_revision = call.f_handler_revision
            AND operations.producer_revision = call.f_producer_revision
            AND operations.policy_revision = call.f_policy_revision
            AND operations.approval_id = call.f_approval_id
            AND operations.approver_id = call.f_approver_id
            AND operations.approval_digest = call.f_approval_digest
            AND operations.approval_expires_at = call.f_approval_expires_at
            AND operations.approved_at = call.f_approved_at
            AND operations.first_operation_id = call.f_first_operation_id
            AND operations.first_call_id = call.f_first_call_id
            AND operations.first_response_id = call.f_first_response_id
            AND operations.first_provider = call.f_first_provider
            AND operations.first_api_family = call.f_first_api_family
            AND operations.first_adapter_revision = call.f_first_adapter_revision
            AND operations.status_ref = call.f_status_ref
            AND operations.state = call.f_state
            AND operations.created_at = call.f_created_at
            AND operations.updated_at = call.f_updated_at
            AND operations.completed_at IS NOT DISTINCT FROM call.f_completed_at
            AND operations.reason = call.f_reason
            AND operations.row_digest = call.f_row_digest
            AND operations.effect_kind = call.f_effect_kind
        FOR NO KEY UPDATE
    ) AS operation
    WHERE pg_catalog.current_setting('search_path') = CAST(@search_path AS TEXT)
        AND (call.d_receipt_id IS NULL OR NOT (
            EXISTS (SELECT 1 FROM downstream_receipts WHERE downstream_receipts.tenant_id = call.d_tenant_id AND downstream_receipts.subject_id = call.d_subject_id AND downstream_receipts.tool_name = call.d_tool_name AND downstream_receipts.idempotency_key = call.d_idempotency_key OFFSET 0)
            OR EXISTS (SELECT 1 FROM downstream_receipts WHERE downstream_receipts.tenant_id = call.d_tenant_id AND downstream_receipts.tool_name = call.d_tool_name AND downstream_receipts.receipt_id = call.d_receipt_id OFFSET 0)
            OR EXISTS (SELECT 1 FROM downstream_receipts WHERE downstream_receipts.tenant_id = call.d_tenant_id AND downstream_receipts.tool_name = call.d_tool_name AND downstream_receipts.downstream_request_id = call.d_downstream_request_id OFFSET 0)
            OR EXISTS (SELECT 1 FROM local_receipts WHERE local_receipts.operation_pk = call.l_operation_pk OFFSET 0)
        ))
), moved AS (
    UPDATE outbox
    SET state = held.e_state, lease_owner = held.e_lease_owner, lease_until = held.e_lease_until, attempt_count = held.e_attempt_count, updated_at = held.e_updated_at, row_digest = held.e_row_digest,
        next_attempt_at = held.e_next_attempt_at, decisions = held.e_decisions
    FROM held WHERE outbox.operation_pk = held.g_operation_pk
), ended AS (
    UPDATE operations
    SET state = held.o_state, updated_at = held.o_updated_at, completed_at = held.o_completed_at, reason = held.o_reason, row_digest = held.o_row_digest
    FROM held WHERE operations.operation_pk = held.f_operation_pk AND held.o_row_digest <> held.f_row_digest
), tried AS (
    INSERT INTO attempts (operation_pk, attempt, worker_id, started_at, ended_at, outcome,
        row_digest, cause)
    SELECT held.a_operation_pk, held.a_attempt, held.a_worker_id, held.a_started_at, held.a_ended_at, held.a_outcome,
        held.a_row_digest, held.a_cause
    FROM held WHERE held.a_operation_pk IS NOT NULL
    ON CONFLICT DO NOTHING
), observed AS (
    INSERT INTO downstream_receipts (
        tenant_id, subject_id, tool_name, idempotency_key, request_sha256, receipt_id,
        downstream_request_id, result_json, producer_revision, resource_revision, observed_at, effect_revision,
        committed_at, row_digest
    )
    SELECT
        held.d_tenant_id, held.d_subject_id, held.d_tool_name, held.d_idempotency_key, held.d_request_sha256, held.d_receipt_id,
        held.d_downstream_request_id, held.d_result_json, held.d_producer_revision, held.d_resource_revision, held.d_observed_at, held.d_effect_revision,
        held.d_committed_at, held.d_row_digest
    FROM held WHERE held.d_receipt_id IS NOT NULL
), accepted AS (
    INSERT INTO local_receipts (
        operation_pk, receipt_id, downstream_request_id, request_sha256, result_json, producer_revision,
        resource_revision, observed_at, effect_revision, reconciled_at, row_digest
    )
    SELECT
        held.l_operation_pk, held.l_receipt_id, held.l_downstream_request_id, held.l_request_sha256, held.l_result_json, held.l_producer_revision,
        held.l_resource_revision, held.l_observed_at, held.l_effect_revision, held.l_reconciled_at, held.l_row_digest
    FROM held WHERE held.l_operation_pk IS NOT NULL
), announced AS (
    INSERT INTO endings (status_ref, row_digest)
    SELECT held.n_status_ref, held.n_row_digest
    FROM held WHERE held.n_status_ref IS NOT NULL
)
SELECT call.place, call.place IN (SELECT held.place FROM held) AS stored
FROM call WHERE pg_catalog.current_setting('search_path') = CAST(@search_path AS TEXT);
-- name: MoveOne :exec
-- MoveOne is MoveMany for a single call.
WITH call AS (
    SELECT
        CAST(@calls AS BIGINT) AS place
), held AS (
    SELECT call.* FROM call, LATERAL (
        SELECT outbox.operation_pk FROM outbox
        WHERE outbox.operation_pk = CAST(CAST(@g_operation_pk AS TEXT) AS BIGINT)
            AND outbox.event_id = CAST(CAST(@g_event_id AS TEXT) AS TEXT)
            AND outbox.payload_json = CAST(CAST(@g_payload_json AS TEXT) AS TEXT)
            AND outbox.state = CAST(CAST(@g_state AS TEXT) AS TEXT)
            AND outbox.lease_owner IS NOT DISTINCT FROM CAST(CAST(@g_lease_owner AS TEXT) AS TEXT)
            AND outbox.lease_until IS NOT DISTINCT FROM CAST(CAST(@g_lease_until AS TEXT) AS BIGINT)
            AND outbox.attempt_count = CAST(CAST(@g_attempt_count AS TEXT) AS BIGINT)
            AND outbox.created_at = CAST(CAST(@g_created_at AS TEXT) AS BIGINT)
            AND outbox.updated_at = CAST(CAST(@g_updated_at AS TEXT) AS BIGINT)
            AND outbox.row_digest = CAST(CAST(@g_row_digest AS TEXT) AS BYTEA)
            AND outbox.next_attempt_at = CAST(CAST(@g_next_attempt_at AS TEXT) AS BIGINT)
            AND outbox.lane = CAST(CAST(@g_lane AS TEXT) AS TEXT)
            AND outbox.decisions = CAST(CAST(@g_decisions AS TEXT) AS BIGINT)
        FOR NO KEY UPDATE
    ) AS event, LATERAL (
        SELECT operations.operation_pk FROM operations
        WHERE event.operation_pk = operations.operation_pk
            AND operations.operation_pk = CAST(CAST(@f_operation_pk AS TEXT) AS BIGINT)
            AND operations.tenant_id = CAST(CAST(@f_tenant_id AS TEXT) AS TEXT)
            AND operations.subject_id = CAST(CAST(@f_subject_id AS TEXT) AS TEXT)
            AND operations.tool_name = CAST(CAST(@f_tool_name AS TEXT) AS TEXT)
            AND operations.idempotency_key = CAST(CAST(@f_idempotency_key AS TEXT) AS TEXT)
            AND operations.request_sha256 = CAST(CAST(@f_request_sha256 AS TEXT) AS TEXT)
            AND operations.arguments_json = CAST(CAST(@f_arguments_json AS TEXT) AS TEXT)
            AND operations.input_schema_revision = CAST(CAST(@f_input_schema_revision AS TEXT) AS TEXT)
            AND operations.output_schema_revision = CAST(CAST(@f_output_schema_revision AS TEXT) AS TEXT)
            AND operations.effect_revision = CAST(CAST(@f_effect_revision AS TEXT) AS TEXT)
            AND operations.handler_revision = CAST(CAST(@f_handler_revision AS TEXT) AS TEXT)
            AND operations.producer_revision = CAST(CAST(@f_producer_revision AS TEXT) AS TEXT)
            AND operations.policy_revision = CAST(CAST(@f_policy_revision AS TEXT) AS TEXT)
            AND operations.approval_id = CAST(CAST(@f_approval_id AS TEXT) AS TEXT)
            AND operations.approver_id = CAST(CAST(@f_approver_id AS TEXT) AS TEXT)
            AND operations.approval_digest = CAST(CAST(@f_approval_digest AS TEXT) AS TEXT)
            AND operations.approval_expires_at = CAST(CAST(@f_approval_expires_at AS TEXT) AS BIGINT)
            AND operations.approved_at = CAST(CAST(@f_approved_at AS TEXT) AS BIGINT)
            AND operations.first_operation_id = CAST(CAST(@f_first_operation_id AS TEXT) AS TEXT)
            AND operations.first_call_id = CAST(CAST(@f_first_call_id AS TEXT) AS TEXT)
            AND operations.first_response_id = CAST(CAST(@f_first_response_id AS TEXT) AS TEXT)
            AND operations.first_provider = CAST(CAST(@f_first_provider AS TEXT) AS TEXT)
            AND operations.first_api_family = CAST(CAST(@f_first_api_family AS TEXT) AS TEXT)
            AND operations.first_adapter_revision = CAST(CAST(@f_first_adapter_revision AS TEXT) AS TEXT)
            AND operations.status_ref = CAST(CAST(@f_status_ref AS TEXT) AS TEXT)
            AND operations.state = CAST(CAST(@f_state AS TEXT) AS TEXT)
            AND operations.created_at = CAST(CAST(@f_created_at AS TEXT) AS BIGINT)
            AND operations.updated_at = CAST(CAST(@f_updated_at AS TEXT) AS BIGINT)
            AND operations.completed_at IS NOT DISTINCT FROM CAST(CAST(@f_completed_at AS TEXT) AS BIGINT)
            AND operations.reason = CAST(CAST(@f_reason AS TEXT) AS TEXT)
            AND operations.row_digest = CAST(CAST(@f_row_digest AS TEXT) AS BYTEA)
            AND operations.effect_kind = CAST(CAST(@f_effect_kind AS TEXT) AS TEXT)
        FOR NO KEY UPDATE
    ) AS operation
    WHERE pg_catalog.current_setting('search_path') = CAST(@search_path AS TEXT)
        AND (CAST(CAST(@d_receipt_id AS TEXT) AS TEXT) IS NULL OR NOT (
            EXISTS (SELECT 1 FROM downstream_receipts WHERE downstream_receipts.tenant_id = CAST(CAST(@d_tenant_id AS TEXT) AS TEXT) AND downstream_receipts.subject_id = CAST(CAST(@d_subject_id AS TEXT) AS TEXT) AND downstream_receipts.tool_name = CAST(CAST(@d_tool_name AS TEXT) AS TEXT) AND downstream_receipts.idempotency_key = CAST(CAST(@d_idempotency_key AS TEXT) AS TEXT) OFFSET 0)
            OR EXISTS (SELECT 1 FROM downstream_receipts WHERE downstream_receipts.tenant_id = CAST(CAST(@d_tenant_id AS TEXT) AS TEXT) AND downstream_receipts.tool_name = CAST(CAST(@d_tool_name AS TEXT) AS TEXT) AND downstream_receipts.receipt_id = CAST(CAST(@d_receipt_id AS TEXT) AS TEXT) OFFSET 0)
            OR EXISTS (SELECT 1 FROM downstream_receipts WHERE downstream_receipts.tenant_id = CAST(CAST(@d_tenant_id AS TEXT) AS TEXT) AND downstream_receipts.tool_name = CAST(CAST(@d_tool_name AS TEXT) AS TEXT) AND downstream_receipts.downstream_request_id = CAST(CAST(@d_downstream_request_id AS TEXT) AS TEXT) OFFSET 0)
            OR EXISTS (SELECT 1 FROM local_receipts WHERE local_receipts.operation_pk = CAST(CAST(@l_operation_pk AS TEXT) AS BIGINT) OFFSET 0)
        ))
), moved AS (
    UPDATE outbox
    SET state = CAST(CAST(@e_state AS TEXT) AS TEXT), lease_owner = CAST(CAST(@e_lease_owner AS TEXT) AS TEXT), lease_until = CAST(CAST(@e_lease_until AS TEXT) AS BIGINT), attempt_count = CAST(CAST(@e_attempt_count AS TEXT) AS BIGINT), updated_at = CAST(CAST(@e_updated_at AS TEXT) AS BIGINT), row_digest = CAST(CAST(@e_row_digest AS TEXT) AS BYTEA),
        next_attempt_at = CAST(CAST(@e_next_attempt_at AS TEXT) AS BIGINT), decisions = CAST(CAST(@e_decisions AS TEXT) AS BIGINT)
    FROM held WHERE outbox.operation_pk = CAST(CAST(@g_operation_pk AS TEXT) AS BIGINT)
), ended AS (
    UPDATE operations
    SET state = CAST(CAST(@o_state AS TEXT) AS TEXT), updated_at = CAST(CAST(@o_updated_at AS TEXT) AS BIGINT), completed_at = CAST(CAST(@o_completed_at AS TEXT) AS BIGINT), reason = CAST(CAST(@o_reason AS TEXT) AS TEXT), row_digest = CAST(CAST(@o_row_digest AS TEXT) AS BYTEA)
    FROM held WHERE operations.operation_pk = CAST(CAST(@f_operation_pk AS TEXT) AS BIGINT) AND CAST(CAST(@o_row_digest AS TEXT) AS BYTEA) <> CAST(CAST(@f_row_digest AS TEXT) AS BYTEA)
), tried AS (
    INSERT INTO attempts (operation_pk, attempt, worker_id, started_at, ended_at, outcome,
        row_digest, cause)
    SELECT CAST(CAST(@a_operation_pk AS TEXT) AS BIGINT), CAST(CAST(@a_attempt AS TEXT) AS BIGINT), CAST(CAST(@a_worker_id AS TEXT) AS TEXT), CAST(CAST(@a_started_at AS TEXT) AS BIGINT), CAST(CAST(@a_ended_at AS TEXT) AS BIGINT), CAST(CAST(@a_outcome AS TEXT) AS TEXT),
        CAST(CAST(@a_row_digest AS TEXT) AS BYTEA), CAST(CAST(@a_cause AS TEXT) AS TEXT)
    FROM held WHERE CAST(CAST(@a_operation_pk AS TEXT) AS BIGINT) IS NOT NULL
    ON CONFLICT DO NOTHING
), observed AS (
    INSERT INTO downstream_receipts (
        tenant_id, subject_id, tool_name, idempotency_key, request_sha256, receipt_id,
        downstream_request_id, result_json, producer_revision, resource_revision, observed_at, effect_revision,
        committed_at, row_digest
    )
    SELECT
        CAST(CAST(@d_tenant_id AS TEXT) AS TEXT), CAST(CAST(@d_subject_id AS TEXT) AS TEXT), CAST(CAST(@d_tool_name AS TEXT) AS TEXT), CAST(CAST(@d_idempotency_key AS TEXT) AS TEXT), CAST(CAST(@d_request_sha256 AS TEXT) AS TEXT), CAST(CAST(@d_receipt_id AS TEXT) AS TEXT),
        CAST(CAST(@d_downstream_request_id AS TEXT) AS TEXT), CAST(CAST(@d_result_json AS TEXT) AS TEXT), CAST(CAST(@d_producer_revision AS TEXT) AS TEXT), CAST(CAST(@d_resource_revision AS TEXT) AS TEXT), CAST(CAST(@d_observed_at AS TEXT) AS TEXT), CAST(CAST(@d_effect_revision AS TEXT) AS TEXT),
        CAST(CAST(@d_committed_at AS TEXT) AS BIGINT), CAST(CAST(@d_row_digest AS TEXT) AS BYTEA)
    FROM held WHERE CAST(CAST(@d_receipt_id AS TEXT) AS TEXT) IS NOT NULL
), accepted AS (
    INSERT INTO local_receipts (
        operation_pk, receipt_id, downstream_request_id, request_sha256, result_json, producer_revision,
        resource_revision, observed_at, effect_revision, reconciled_at, row_digest
    )
    SELECT
        CAST(CAST(@l_operation_pk AS TEXT) AS BIGINT), CAST(CAST(@l_receipt_id AS TEXT) AS TEXT), CAST(CAST(@l_downstream_request_id AS TEXT) AS TEXT), CAST(CAST(@l_request_sha256 AS TEXT) AS TEXT), CAST(CAST(@l_result_json AS TEXT) AS TEXT), CAST(CAST(@l_producer_revision AS TEXT) AS TEXT),
        CAST(CAST(@l_resource_revision AS TEXT) AS TEXT), CAST(CAST(@l_observed_at AS TEXT) AS TEXT), CAST(CAST(@l_effect_revision AS TEXT) AS TEXT), CAST(CAST(@l_reconciled_at AS TEXT) AS BIGINT), CAST(CAST(@l_row_digest AS TEXT) AS BYTEA)
    FROM held WHERE CAST(CAST(@l_operation_pk AS TEXT) AS BIGINT) IS NOT NULL
), announced AS (
    INSERT INTO endings (status_ref, row_digest)
    SELECT CAST(CAST(@n_status_ref AS TEXT) AS TEXT), CAST(CAST(@n_row_digest AS TEXT) AS BYTEA)
    FROM held WHERE CAST(CAST(@n_status_ref AS TEXT) AS TEXT) IS NOT NULL
)
SELECT call.place, call.place IN (SELECT held.place FROM held) AS stored
FROM call WHERE pg_catalog.current_setting('search_path') = CAST(@search_path AS TEXT);
