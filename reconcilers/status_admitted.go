// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/defaults"
	"trueup.dev/internal/difference"
)

// admittedStatuses remembers how the API server changes a status that is written: it sets the defaults of the schema
// and drops unknown fields. A status that would be stored as the current status need not be written.
type admittedStatuses struct {
	// remembered has no entry for a status that is stored unchanged.
	remembered[admittedStatus]
	schemas defaults.Schemas
}

// admittedStatus holds snapshots, see [statusType.snapshot].
type admittedStatus struct{ requested, stored client.Object }

// isStored reports whether the API server would store the status of obj as the status of stored. An object without a
// UID was not read from an API server.
func (a *admittedStatuses) isStored(
	ctx context.Context, config Config, status *statusType, obj, stored client.Object,
) bool {
	uid := obj.GetUID()
	if uid == "" {
		return false
	}
	if known, ok := a.get(uid, func(known admittedStatus) bool {
		return status.equal(known.requested, obj) && status.equal(known.stored, stored)
	}); ok {
		a.put(uid, known)
		return true
	}
	if !mayBeDefaults(difference.Between(status.of(stored), status.of(obj))) {
		return false
	}
	log := logr.FromContextOrDiscard(ctx)
	filled, known := withSchemaDefaults(ctx, log, config, &a.schemas, obj, true)
	if !known || !status.equal(filled, stored) {
		return false
	}
	a.put(uid, admittedStatus{requested: status.snapshot(obj), stored: status.snapshot(stored)})
	log.V(1).Info("status is in sync with the defaults of the API server, no update required")
	return true
}

// learn records that the status of requested was stored as the status of stored.
func (a *admittedStatuses) learn(status *statusType, requested, stored client.Object) {
	switch uid := stored.GetUID(); {
	case uid == "":
	case status.equal(requested, stored):
		a.forget(uid)
	default:
		a.put(uid, admittedStatus{requested: requested, stored: status.snapshot(stored)})
	}
}

// mayBeDefaults reports whether every difference is a field that only the stored object has.
func mayBeDefaults(found []difference.Difference) bool {
	for _, d := range found {
		if !d.Removed {
			return false
		}
	}
	return true
}
