// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/difference"
	"trueup.dev/internal/engine/step"
	"trueup.dev/observe"
)

// unwritten finds fields of a reconciled resource, other than its status, that reconcilers change in memory only: the
// changes are lost, and nothing else would show it. The zero value is ready to use. It is safe for concurrent use.
type unwritten struct {
	compared seldom
	// logged has the paths that were logged.
	logged sync.Map
}

// before returns a copy of the resource to compare it with after the reconcilers ran, once for each generation, or nil.
func (u *unwritten) before(ctx context.Context, resource client.Object, byController bool) client.Object {
	uid := resource.GetUID()
	if !logr.FromContextOrDiscard(ctx).Enabled() && !observe.IsObserved(ctx) || uid == "" && byController ||
		!u.compared.isNew(uid, resource.GetGeneration()) {
		return nil
	}
	return resource.DeepCopyObject().(client.Object)
}

// check logs and reports the fields that were changed and not written.
func (u *unwritten) check(ctx context.Context, before, resource client.Object) {
	if before == nil || before.GetGeneration() != resource.GetGeneration() {
		return // it was written
	}
	sameVersion := before.GetResourceVersion() == resource.GetResourceVersion()
	fields := []string{}
	for _, d := range difference.Between(before, resource) {
		path := d.Field()
		hasGeneration := before.GetGeneration() > 0 && !isBelow(path, "metadata")
		if !isAuthors(path) || !sameVersion && !hasGeneration {
			continue
		}
		if _, known := u.logged.LoadOrStore(path, true); !known {
			fields = append(fields, path)
		}
	}
	if len(fields) == 0 {
		return
	}
	observe.Of(nil).Report(ctx, &observe.ProblemFound{Path: step.Names(ctx), Text: fmt.Sprintf(
		"reconcilers change %s of the resource in memory only, and only the status is written; "+
			"set it in the method Default of the type or in a webhook, or write it with Update or Patch",
		strings.Join(fields, ", "))})
	logr.FromContextOrDiscard(ctx).Info("reconcilers changed fields of the resource in memory only. Only the status is "+
		"written: set them in the method Default of the type or in a webhook, or write them with Update or Patch",
		"fields", fields)
}
