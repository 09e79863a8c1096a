// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var (
	request = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "it"}}
	epoch   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func configMap(version string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings", ResourceVersion: version}, Data: data,
	}
}

func updated(name string) Cause {
	return Cause{Type: CauseWatched, Verb: Updated, Object: types.NamespacedName{Namespace: "default", Name: name}}
}

func describe(causes []Cause, omitted int) []string {
	lines := []string{}
	for _, c := range causes {
		line := fmt.Sprintf("%s %s×%d", c.Type, c.Object.Name, c.Count)
		if c.Attempt > 0 {
			line += fmt.Sprintf(", attempt %d after %v", c.Attempt, c.Err)
		}
		lines = append(lines, line)
	}
	if omitted > 0 {
		lines = append(lines, fmt.Sprintf("%d omitted", omitted))
	}
	return lines
}

func (p *pending) enqueue(cause Cause) {
	p.adding(request, cause)
	p.added(request)
}

func TestPending(t *testing.T) {
	failed := errors.New("failed")
	retry := func() *Cause { return &Cause{Type: CauseRetry, At: epoch, Count: 1, Err: failed} }
	later := func(after time.Duration) *Cause {
		return &Cause{Type: CauseRequeue, At: epoch, Count: 1, After: after}
	}
	for name, tt := range map[string]struct {
		do   func(p *pending)
		want []string
	}{
		"nothing recorded": {do: func(*pending) {}, want: []string{"Unknown ×1"}},
		"equal causes are merged": {
			do:   func(p *pending) { p.enqueue(updated("a")); p.enqueue(updated("b")); p.enqueue(updated("a")) },
			want: []string{"Watched a×2", "Watched b×1"},
		},
		"causes are limited": {
			do: func(p *pending) {
				for i := range maxCauses + 3 {
					p.enqueue(updated(fmt.Sprint(i)))
				}
			},
			want: append(func() (lines []string) {
				for i := range maxCauses {
					lines = append(lines, fmt.Sprintf("Watched %d×1", i))
				}
				return lines
			}(), "3 omitted"),
		},
		"causes are taken once": {
			do:   func(p *pending) { p.enqueue(updated("a")); p.take(request, epoch) },
			want: []string{"Unknown ×1"},
		},
		"a due requeue": {
			do:   func(p *pending) { p.ended(request, &Run{}, false, later(time.Second)) },
			want: []string{"Requeue ×1"},
		},
		"a requeue that is not due": {
			do: func(p *pending) {
				p.ended(request, &Run{}, false, later(time.Hour))
				p.enqueue(updated("a"))
			},
			want: []string{"Watched a×1"},
		},
		"retries are counted": {
			do: func(p *pending) {
				p.ended(request, &Run{}, true, retry())
				p.take(request, epoch)
				p.ended(request, &Run{}, true, retry())
			},
			want: []string{"Retry ×1, attempt 2 after failed"},
		},
		"a success resets the count": {
			do: func(p *pending) {
				p.ended(request, &Run{}, true, retry())
				p.ended(request, &Run{}, false, nil)
				p.ended(request, &Run{}, true, retry())
			},
			want: []string{"Retry ×1, attempt 1 after failed"},
		},
		"a wait keeps the causes": {
			do: func(p *pending) {
				run := &Run{Causes: []Cause{{Type: CauseObject, Verb: Updated, Count: 1}}}
				p.enqueue(updated("a"))
				p.ended(request, run, false, &Cause{Type: CauseStaleRead, At: epoch, Count: 1})
			},
			want: []string{"Object ×1", "Watched a×1", "StaleRead ×1"},
		},
		"a reconcile starts while a request is being added": {
			do: func(p *pending) {
				p.adding(request, updated("a"))
				p.take(request, epoch)
				p.added(request)
			},
			want: []string{"Watched a×1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pending{}
			tt.do(p)
			if diff := cmp.Diff(tt.want, describe(p.take(request, epoch.Add(time.Minute)))); diff != "" {
				t.Errorf("unexpected causes (-want +got):\n%s", diff)
			}
			p.ended(request, &Run{}, false, nil)
			p.take(request, epoch)
			if p.requests.Len() != 0 {
				t.Errorf("%d requests are kept", p.requests.Len())
			}
		})
	}
}

// TestCause_mergedChanges tests that merged updates show the changes of all of them.
func TestCause_mergedChanges(t *testing.T) {
	p := &pending{}
	states := []*corev1.ConfigMap{
		configMap("1", map[string]string{"a": "1"}), configMap("2", map[string]string{"a": "2"}),
		configMap("3", map[string]string{"a": "2", "b": "1"}),
	}
	for i := range states[1:] {
		cause := updated("settings")
		cause.before, cause.after = states[i], states[i+1]
		p.enqueue(cause)
	}
	causes, _ := p.take(request, epoch)
	want := []Change{{Path: "data[a]", Before: `"1"`, After: `"2"`}, {Path: "data[b]", After: `"1"`}}
	if diff := cmp.Diff(want, causes[0].Changes(Mask{})); diff != "" {
		t.Errorf("unexpected changes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"data"}, causes[0].Parts()); diff != "" {
		t.Errorf("unexpected parts (-want +got):\n%s", diff)
	}
	if got := causes[0].ResourceVersion(); got != "3" {
		t.Errorf("resource version %q, want that of the last update", got)
	}
	if got := (&Cause{Type: CauseRequeue}).ResourceVersion(); got != "" {
		t.Errorf("resource version of a requeue: %q", got)
	}
}

func TestChanges_masked(t *testing.T) {
	secret := func(value string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"last-applied": value}},
			Data:       map[string][]byte{"password": []byte(value)},
		}
	}
	for name, tt := range map[string]struct {
		call Call
		mask Mask
		want []Change
	}{
		"secret": {
			call: Call{before: secret("one"), after: secret("two")},
			want: []Change{
				{Path: "metadata.annotations[last-applied]", Before: masked, After: masked},
				{Path: "data[password]", Before: masked, After: masked},
			},
		},
		"masked path": {
			call: Call{
				before: configMap("1", map[string]string{"token": "one", "tokens": "one"}),
				after:  configMap("2", map[string]string{"token": "two", "tokens": "two"}),
			},
			mask: Mask{Paths: []string{"data[token]"}},
			want: []Change{
				{Path: "data[token]", Before: masked, After: masked}, {Path: "data[tokens]", Before: `"one"`, After: `"two"`},
			},
		},
		"no answer": {call: Call{before: secret("one")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.call.Changes(tt.mask)); diff != "" {
				t.Errorf("unexpected changes (-want +got):\n%s", diff)
			}
		})
	}
}

// Each reconcile allocates a run. An object of up to 512 bytes has no header.
func TestSizeOfARun(t *testing.T) {
	if size := reflect.TypeFor[running]().Size(); size > 512 {
		t.Errorf("a run has %d bytes, want at most 512: put what few runs need into rare", size)
	}
}
