// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/defaults"
)

// admittedStatuses knows what becomes of a status that is written: the API server fills in the defaults of its schema
// and drops fields that it does not know. A status that leads to the stored one need not be written again.
type admittedStatuses struct {
	once sync.Once
	// seen has the UIDs of objects as its keys and *admittedStatus as its values. Objects whose status is stored as it is
	// written are not in it.
	seen    *cache.Expiring
	schemas defaults.Schemas
}

// admittedStatus holds snapshots, see [statusType.snapshot].
type admittedStatus struct{ asked, stored client.Object }

func (a *admittedStatuses) store() *cache.Expiring {
	a.once.Do(func() { a.seen = cache.NewExpiring() })
	return a.seen
}

// isStored reports whether the status of obj would become that of stored. An object without a UID does not come from an
// API server.
func (a *admittedStatuses) isStored(
	ctx context.Context, config Config, status *statusType, obj, stored client.Object,
) bool {
	uid := obj.GetUID()
	if uid == "" {
		return false
	}
	if value, ok := a.store().Get(uid); ok {
		known := value.(*admittedStatus)
		if status.equal(known.asked, obj) && status.equal(known.stored, stored) {
			a.put(uid, known)
			return true
		}
	}
	if !mayBeDefaults(differences(status.of(stored), status.of(obj))) {
		return false
	}
	log := logr.FromContextOrDiscard(ctx)
	filled, known := withSchemaDefaults(log, config, &a.schemas, obj, true)
	if !known || !status.equal(filled, stored) {
		return false
	}
	a.put(uid, &admittedStatus{asked: status.snapshot(obj), stored: status.snapshot(stored)})
	log.V(1).Info("status is in sync with the defaults of the API server, no update required")
	return true
}

// learn remembers that the status of asked has become that of stored.
func (a *admittedStatuses) learn(status *statusType, asked, stored client.Object) {
	switch uid := stored.GetUID(); {
	case uid == "":
	case status.equal(asked, stored):
		a.store().Delete(uid)
	default:
		a.put(uid, &admittedStatus{asked: asked, stored: status.snapshot(stored)})
	}
}

func (a *admittedStatuses) put(uid types.UID, known *admittedStatus) {
	a.store().Set(uid, known, admissionMemoryTTL)
}

// mayBeDefaults reports whether each difference is a field that only the stored object has.
func mayBeDefaults(found []difference) bool {
	for _, d := range found {
		if !d.removed {
			return false
		}
	}
	return true
}
