// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// brokenStore is a store that fails while it is down, and counts its calls.
type brokenStore struct {
	Store
	down  bool
	calls int
}

func (s *brokenStore) Set(ctx context.Context, key string, value []byte) error {
	if s.calls++; s.down {
		return errFault
	}
	return s.Store.Set(ctx, key, value)
}

// The beginning and the end of an outage are logged once, however long it takes. A failing store is called once a
// second.
func TestCheckedStore_LogsAnOutageOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged []string
		ctx := logr.NewContext(t.Context(), funcr.New(func(_, args string) {
			for _, text := range []string{"the store of an informer fails", "the store of an informer works again"} {
				if strings.Contains(args, text) {
					logged = append(logged, text)
				}
			}
		}, funcr.Options{}))
		broken := &brokenStore{Store: NewMemoryStore()}
		store := newCheckedStore(broken, corev1.SchemeGroupVersion.WithKind("ConfigMap"), &corev1.ConfigMap{})
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}
		// use writes ten times a second.
		use := func(d time.Duration) (calls int) {
			before := broken.calls
			for range d / (100 * time.Millisecond) {
				store.set(ctx, client.ObjectKeyFromObject(object), object)
				time.Sleep(100 * time.Millisecond)
			}
			return broken.calls - before
		}
		want := func(lines ...string) {
			t.Helper()
			if diff := cmp.Diff(lines, logged); diff != "" {
				t.Errorf("logged (-want +got):\n%s", diff)
			}
			logged = nil
		}
		use(time.Second)
		want()
		broken.down = true
		if calls := use(time.Minute); calls < 30 || calls > 65 {
			t.Errorf("the store that is down was called %d times in a minute, want about 60", calls)
		}
		want("the store of an informer fails")
		broken.down = false
		use(5 * time.Second)
		broken.down = true // flapping is one outage
		use(5 * time.Second)
		want()
		broken.down = false
		if calls := use(time.Minute); calls < 580 {
			t.Errorf("the store that works was called %d times in a minute, want 600", calls)
		}
		want("the store of an informer works again")
		broken.down = true
		use(time.Minute)
		want("the store of an informer fails")
	})
}
