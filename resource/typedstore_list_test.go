// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/resource"
)

func names[T resource.Object](objs []T) []string {
	names := []string{}
	for _, obj := range objs {
		names = append(names, obj.GetName())
	}
	return names
}

func TestTypedStore_List(t *testing.T) {
	labeled := func(name, namespace, app string) *MyKind {
		return newMyKind(name, func(o *MyKind) { o.Namespace = namespace; o.Labels = map[string]string{"app": app} })
	}
	cluster := newCluster(
		t, interceptor.Funcs{}, labeled("a", "ns", "web"), labeled("b", "ns", "db"), labeled("c", "other", "web"),
	)
	store := newStore[*MyKind](t, myKind, resource.NewClientGenerator(cluster, nil))
	tests := map[string]struct {
		reason  string
		options resource.StoreListOptions
		want    []string
	}{
		"All":       {reason: "no filter", want: []string{"a", "b", "c"}},
		"Namespace": {reason: "one namespace", options: resource.StoreListOptions{Namespace: "ns"}, want: []string{"a", "b"}},
		"Label": {
			reason:  "one label",
			options: resource.StoreListOptions{LabelFilters: []string{"app=web"}},
			want:    []string{"a", "c"},
		},
		"Labels": {
			reason:  "all filters must match",
			options: resource.StoreListOptions{LabelFilters: []string{"app in (web,db)", "app!=web"}},
			want:    []string{"b"},
		},
		"None": {reason: "nothing matches", options: resource.StoreListOptions{Namespace: "nowhere"}, want: []string{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			list := must[*resource.TypedList[*MyKind]](t)(store.List(t.Context(), tt.options))
			if diff := cmp.Diff(tt.want, names(list.Items)); diff != "" {
				t.Errorf("%s: names (-want +got):\n%s", tt.reason, diff)
			}
			if list.Kind != "MyKindList" {
				t.Errorf("kind of the list: got %s", list.Kind)
			}
			for _, obj := range list.Items {
				if obj.GroupVersionKind() != myKind.GroupVersionKind() {
					t.Errorf("kind of the item: got %s", obj.GroupVersionKind())
				}
			}
		})
	}
}

// pager returns lists of MyKinds in pages.
type pager struct {
	total    int
	requests []string
	// expireAt is the start of the page whose continue token has expired, and offer is the fresh token that the API server
	// returns instead.
	expireAt string
	offer    string
	// token is the continue token of the last page.
	token string
	// failAt is the start of the page that fails.
	failAt string
}

var errPage = errors.New("failure of the test")

func (p *pager) list(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	p.requests = append(p.requests, fmt.Sprintf("%d from %q", o.Limit, o.Continue))
	if o.Continue != "" && o.Continue == p.expireAt {
		if p.offer != p.expireAt {
			p.expireAt = ""
		}
		return &apierrs.StatusError{ErrStatus: metav1.Status{
			Code: http.StatusGone, Reason: metav1.StatusReasonExpired, ListMeta: metav1.ListMeta{Continue: p.offer},
		}}
	}
	if o.Continue != "" && o.Continue == p.failAt {
		return errPage
	}
	start, page := 0, list.(*MyKindList)
	page.Continue = p.token
	if o.Continue != "" {
		_, _ = fmt.Sscanf(o.Continue, "%d", &start)
	}
	end := p.total
	if o.Limit > 0 && start+int(o.Limit) < end {
		end = start + int(o.Limit)
		page.Continue = fmt.Sprint(end)
	}
	for i := start; i < end; i++ {
		page.Items = append(page.Items, *newMyKind(fmt.Sprint(i)))
	}
	page.ResourceVersion = "7"
	return nil
}

func TestTypedStore_List_pages(t *testing.T) {
	tests := map[string]struct {
		reason   string
		pager    pager
		perPage  int
		cached   bool
		want     int
		wantErr  func(error) bool
		requests []string
	}{
		"Default": {
			reason:   "pages have a default size",
			pager:    pager{total: 3},
			want:     3,
			requests: []string{`500 from ""`},
		},
		"Pages": {
			reason:   "all pages are requested",
			pager:    pager{total: 5},
			perPage:  2,
			want:     5,
			requests: []string{`2 from ""`, `2 from "2"`, `2 from "4"`},
		},
		"ExactPages": {
			reason:   "the last page is full",
			pager:    pager{total: 4},
			perPage:  2,
			want:     4,
			requests: []string{`2 from ""`, `2 from "2"`},
		},
		"Cached": {
			reason:   "a cache has no pages",
			pager:    pager{total: 5, token: "continue-not-supported"},
			perPage:  2,
			cached:   true,
			want:     5,
			requests: []string{`0 from ""`},
		},
		"Expired": {
			reason:   "the API server offers a fresh token",
			pager:    pager{total: 5, expireAt: "2", offer: "3"},
			perPage:  2,
			want:     4,
			requests: []string{`2 from ""`, `2 from "2"`, `2 from "3"`},
		},
		"ExpiredForGood": {
			reason:   "the API server offers no token",
			pager:    pager{total: 5, expireAt: "2"},
			perPage:  2,
			want:     2,
			wantErr:  apierrs.IsResourceExpired,
			requests: []string{`2 from ""`, `2 from "2"`},
		},
		"ExpiredAgain": {
			reason:   "the API server offers the expired token",
			pager:    pager{total: 5, expireAt: "2", offer: "2"},
			perPage:  2,
			want:     2,
			wantErr:  apierrs.IsResourceExpired,
			requests: []string{`2 from ""`, `2 from "2"`},
		},
		"Fails": {
			reason:   "a page fails",
			pager:    pager{total: 5, failAt: "2"},
			perPage:  2,
			want:     2,
			wantErr:  func(err error) bool { return errors.Is(err, errPage) },
			requests: []string{`2 from ""`, `2 from "2"`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t, interceptor.Funcs{List: tt.pager.list})
			clients := resource.NewClientGenerator(cluster, nil)
			if tt.cached {
				clients = resource.NewClientGenerator(cluster, cluster)
			}
			store := newStore[*MyKind](t, myKind, clients)
			options := resource.StoreListOptions{PerPage: tt.perPage}
			seen, failures := map[string]bool{}, []error{}
			for obj, err := range store.All(t.Context(), options) {
				if err != nil {
					failures = append(failures, err)
				} else {
					seen[obj.Name] = true
				}
			}
			if len(seen) != tt.want {
				t.Errorf("%s: %d objects, want %d: %v", tt.reason, len(seen), tt.want, seen)
			}
			if (len(failures) > 0) != (tt.wantErr != nil) || len(failures) > 1 ||
				len(failures) == 1 && !tt.wantErr(failures[0]) {
				t.Errorf("%s: errors %v", tt.reason, failures)
			}
			if diff := cmp.Diff(tt.requests, tt.pager.requests); diff != "" {
				t.Errorf("%s: requests (-want +got):\n%s", tt.reason, diff)
			}
			if list, err := store.List(t.Context(), options); err == nil &&
				(len(list.Items) < tt.want || list.ResourceVersion != "7") {
				t.Errorf("%s: list of %d at %q", tt.reason, len(list.Items), list.ResourceVersion)
			} else if err != nil &&
				tt.wantErr == nil {
				t.Error(err)
			}
		})
	}
}

// No further page is requested after a break.
func TestTypedStore_All_break(t *testing.T) {
	p := pager{total: 10}
	store := newStore[*MyKind](t, myKind, resource.NewClientGenerator(newCluster(t, interceptor.Funcs{List: p.list}), nil))
	seen := 0
	for _, err := range store.All(t.Context(), resource.StoreListOptions{PerPage: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 3 {
			break
		}
	}
	if diff := cmp.Diff([]string{`2 from ""`, `2 from "2"`}, p.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
