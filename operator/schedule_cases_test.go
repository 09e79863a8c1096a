// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
)

// TestAbsent_NeverCached covers a case that random schedules rarely reach: a request has read a resource from the API
// server, and the next one does not find it, because the cache is still behind.
func TestAbsent_NeverCached(t *testing.T) {
	c := newCostCluster(t)
	obj := c.newObject(0)
	key := client.ObjectKeyFromObject(obj)
	c.objects[key] = obj
	c.reconcile(t.Context(), t, obj)
	c.wantCalls(t, 1)

	delete(c.objects, key)
	c.stored = map[types.NamespacedName]*fixture.Resource{key: obj}
	c.reconcile(t.Context(), t, obj)
	c.wantCalls(t, 0)

	delete(c.stored, key)
	c.reconcile(t.Context(), t, obj)
	c.wantCalls(t, 1)
	if n := c.edge.ledger.len(); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

// TestOlderThan_OtherResource covers a cache that is so far behind that it has an earlier resource of the same name.
func TestOlderThan_OtherResource(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	object := func(uid types.UID, version string, created time.Time) client.Object {
		return &fixture.Resource{
			ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version, CreationTimestamp: metav1.NewTime(created)},
		}
	}
	for name, tc := range map[string]struct {
		a, b client.Object
		want bool
	}{
		"before, by another clock":          {object("a", "5", now.Add(time.Second)), object("b", "9", now), true},
		"after, by another clock":           {object("a", "9", now), object("b", "5", now.Add(time.Second)), false},
		"no comparable versions, before":    {object("a", "five", now), object("b", "9", now.Add(time.Second)), true},
		"no comparable versions, after":     {object("a", "five", now.Add(time.Second)), object("b", "9", now), false},
		"no comparable versions, and times": {object("a", "five", time.Time{}), object("b", "9", now), false},
		"no comparable versions, the same":  {object("a", "five", now), object("a", "9", now.Add(time.Second)), false},
		"the same, an earlier state of it":  {object("a", "5", now), object("a", "9", now), true},
		"the same, no earlier state of it":  {object("a", "9", now), object("a", "5", now), false},
		"the same, the state is that state": {object("a", "9", now), object("a", "9", now), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := olderThan(tc.a, tc.b); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
