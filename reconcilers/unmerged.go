// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/difference"
	"trueup.dev/internal/engine/step"
	"trueup.dev/observe"
)

// unmerged finds fields of desired objects that MergeBeforeUpdate does not copy: their changes would have no effect,
// and nothing else would show it. The zero value is ready to use. It is safe for concurrent use.
type unmerged struct {
	compared seldom
	// logged has the paths that were logged.
	logged sync.Map
}

// check logs and reports the fields that were set in the desired object and have another value after the merge. Each
// object is compared once for each generation of the reconciled resource, and each field is logged once.
func (u *unmerged) check(
	ctx context.Context, log logr.Logger, resource, merged, desired client.Object, ignored []string,
) {
	if !log.Enabled() && !observe.IsObserved(ctx) || !u.compared.isNew(merged.GetUID(), resource.GetGeneration()) {
		return
	}
	fields := []string{}
	for _, d := range difference.Between(desired, merged) {
		path := d.Field()
		if before, _ := d.Values(); before == nil || !isAuthors(path) || isBelowAny(path, ignored) {
			continue
		}
		if _, known := u.logged.LoadOrStore(path, true); !known || merged.GetUID() == "" {
			fields = append(fields, path)
		}
	}
	if len(fields) > 0 {
		observe.Of(nil).Report(ctx, &observe.ProblemFound{Path: step.Names(ctx), Text: fmt.Sprintf(
			"MergeBeforeUpdate does not copy %s to the existing %s, so changes of it have no effect; "+
				"copy it, or list it in Unmerged", strings.Join(fields, ", "), identify(merged))})
		log.Info("MergeBeforeUpdate does not copy fields of the desired object, so they are not updated. "+
			"List them in Unmerged if that is intended", "resource", identify(merged), "fields", fields)
	}
}

// isAuthors reports whether the author of a desired object may set a field: not the type, the status, nor metadata
// other than labels and annotations.
func isAuthors(path string) bool {
	if isBelow(path, "metadata") {
		return isBelow(path, "metadata.labels") || isBelow(path, "metadata.annotations")
	}
	return !isBelowAny(path, []string{"kind", "apiVersion", "status"})
}

func isBelowAny(path string, paths []string) bool {
	return slices.ContainsFunc(paths, func(other string) bool { return isBelow(path, strings.TrimPrefix(other, ".")) })
}

// seldom is a set of objects of fixed size that may contain some that were not added. The zero value is ready to use.
type seldom struct {
	bits [1024]atomic.Uint64
}

var seldomSeed = maphash.MakeSeed()

// isNew adds an object in a generation of its parent, and reports whether it was missing. Objects without a UID, which
// tests have, are always new.
func (s *seldom) isNew(uid types.UID, generation int64) bool {
	if uid == "" {
		return true
	}
	at := (maphash.String(seldomSeed, string(uid)) ^ uint64(generation)*0x9e3779b97f4a7c15) % (1024 * 64)
	bit := uint64(1) << (at % 64)
	word := &s.bits[at/64]
	return word.Load()&bit == 0 && word.Or(bit)&bit == 0
}
