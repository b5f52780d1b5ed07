// Command service is the smallest service on PostgreSQL: a test builds it
// without cgo.
package main

import (
	"context"
	"log"
	"os"

	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/pgstore"
)

func main() {
	store, err := pgstore.Open(context.Background(), os.Getenv("DATABASE_URL"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if _, err := toolruntime.New(store, nil); err != nil {
		log.Fatal(err)
	}
}
