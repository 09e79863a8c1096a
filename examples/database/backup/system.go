// SPDX-License-Identifier: Apache-2.0

package backup

import "context"

// System takes and stores backups, and has accounts for programs that store backups themselves. It must be safe for
// concurrent use.
type System interface {
	// Take starts the backup of a request, unless it was started before, and reports whether it is complete. Callers
	// call it until it is complete; a call for a complete backup changes nothing and does not need the source.
	Take(ctx context.Context, request Request) (complete bool, err error)

	// Account returns the target of an account. Found is false if the account does not exist.
	Account(ctx context.Context, id string) (target string, found bool, err error)
	// SetAccount creates or changes an account, which may store backups at the target only.
	SetAccount(ctx context.Context, id, target string) error
	// DeleteAccount deletes an account, and keeps its backups. It does nothing if the account does not exist.
	DeleteAccount(ctx context.Context, id string) error
}

// Request is a backup to take.
type Request struct {
	// ID identifies the backup: two requests with the same ID are the same backup. The UID of a Database is a good ID,
	// because a later Database with the same name has another UID.
	ID string `json:"id"`
	// Source is the host and port of the server to back up.
	Source string `json:"source"`
	// Target is the location of the backup.
	Target string `json:"target"`
}
