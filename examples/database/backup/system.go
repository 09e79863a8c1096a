// SPDX-License-Identifier: Apache-2.0

package backup

import "context"

// System takes and keeps backups. Its methods may be called by several goroutines.
type System interface {
	// Take starts the backup of a request, unless it was started before, and reports whether it is complete. Callers call
	// it again until it is; a call for a complete backup changes nothing and does not need the source any more.
	Take(ctx context.Context, request Request) (complete bool, err error)
}

// Request is a backup to take.
type Request struct {
	// ID identifies the backup: two requests with the same ID are the same backup. The UID of a Database is a good one,
	// because another Database that gets the same name later has another UID.
	ID string `json:"id"`
	// Source is the host and port of the server to back up.
	Source string `json:"source"`
	// Target is where the backup goes.
	Target string `json:"target"`
}
