package main

// bulkOperations is how many operations are outstanding in the scenarios work and
// bulk, and bulkJobs those of River, of which it needs more to show its best.
const (
	bulkOperations = 2000
	bulkJobs       = 6000
)

// workers is how many handlers a worker of the runtime runs at once there.
const workers = 64

// scenarios are all that `make bench` measures; those on PostgreSQL only where
// there is one, and Restate's too.
func scenarios(postgres bool, restate string) []scenario {
	all := append([]scenario{diskSync, floorCommit}, onDatabase("sqlite")...)
	all = append(all, goqiteScenarios()...)
	all = append(all, riverSQLite()...)
	if postgres {
		all = append(all, onDatabase("postgres")...)
		all = append(all, setScenarios()...)
		all = append(all, riverPostgres()...)
		all = append(all, dbosScenarios()...)
	}
	if restate != "" {
		all = append(all, restateScenarios(restate)...)
	}
	return all
}

// onDatabase are the floor and the runtime.
func onDatabase(database string) []scenario {
	var all []scenario
	add := func(s ...scenario) { all = append(all, s...) }
	known := func(i int64) int64 { return i%stored + 1 }
	for _, callers := range []int{1, 8, 64, 256} {
		add(floorWrites("fresh", database, callers, answering),
			onLedger("fresh", database, callers, newLedger, func(l *ledger) load { return l.fresh(0) }),
			floorWrites("submit", database, callers, accepting),
			onLedger("submit", database, callers, newLedger, (*ledger).submits))
		add(floorReplay(database, callers),
			onLedger("replay", database, callers, newFilled, func(l *ledger) load { return l.replay(known) }))
		if callers <= 64 {
			add(onLedger("status", database, callers, newFilled, func(l *ledger) load { return l.status(known) }))
		}
	}
	add(onLedger("storm", database, submitters, newFilled, (*ledger).storm),
		first(floorWrites("fresh", database, submitters, answering)),
		first(onLedger("fresh", database, submitters, newLedger, func(l *ledger) load { return l.fresh(0) })))
	add(onLedger("accept", database, submitters, newLedger, func(l *ledger) load { return l.accepts(bulkOperations) }),
		onLedger("work", database, workers, newLedger, func(l *ledger) load { return l.bulk(0, bulkOperations, false) }),
		onLedger("bulk", database, workers, newLedger, func(l *ledger) load { return l.bulk(0, bulkOperations, true) }),
		onLedger("audit", database, 1, newFilled, func(l *ledger) load { return l.audit(stored) }))
	add(processesScenarios(database)...)
	return all
}
