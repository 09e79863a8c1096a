// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/apitest"
)

func TestCustomCache_Repairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, store := newTinyAPI(), NewMemoryStore()
		for i := range 30 {
			api.put(fmt.Sprintf("n%d", i), "1")
		}
		informer := running(t, api, store)
		for _, tc := range []struct {
			reason string
			lost   int
			do     func()
			reads  int
		}{
			{"a hit makes no request", 0, func() { got(t, informer, "n1") }, 0},
			{"a miss asks the API server", 30, func() { got(t, informer, "n1") }, 1},
			{"once", 0, func() { got(t, informer, "n1") }, 0},
			{"a list with many misses is one list", 30, func() { listed(t, informer) }, 1},
			{"once", 0, func() { listed(t, informer) }, 0},
			{"a list with few misses reads those", 3, func() { listed(t, informer) }, 3},
			{"a missing object makes no request", 0, func() { got(t, informer, "other") }, 0},
		} {
			for i := range tc.lost {
				_ = store.Delete(
					t.Context(), informer.store.keyOf(client.ObjectKey{Namespace: "test", Name: fmt.Sprintf("n%d", i)}),
				)
			}
			before := api.readCount()
			tc.do()
			if reads := api.readCount() - before; reads != tc.reads {
				t.Errorf("%s: %d reads, want %d", tc.reason, reads, tc.reads)
			}
		}
		if diff := cmp.Diff(api.state(), listed(t, informer)); diff != "" {
			t.Errorf("lists differ (-want +got):\n%s", diff)
		}
		for key := range store.values {
			if strings.Contains(string(store.values[key]), "managedFields") {
				t.Errorf("%s has managed fields", key)
			}
		}
	})
}

func TestCustomCache_Selects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newTinyAPI()
		for name, value := range map[string]string{"a": "1", "b": "2", "c": "2", "d": "3"} {
			api.put(name, value)
		}
		informer := newTestInformer(t, api, NewMemoryStore())
		values := func(obj client.Object) []string { return []string{obj.(*corev1.ConfigMap).Data["value"]} }
		names := func(obj client.Object) []string { return []string{obj.GetName()} }
		must(
			t, informer.IndexField(t.Context(), &corev1.ConfigMap{}, "value", values),
			informer.IndexField(t.Context(), &corev1.ConfigMap{}, "name", names),
		)
		if err := informer.IndexField(t.Context(), &corev1.ConfigMap{}, "value", values); err == nil ||
			!strings.Contains(err.Error(), "indexer conflict") {
			t.Errorf("an index for the second time: %v", err)
		}
		launch(t, informer)
		synctest.Wait()
		api.put("a", "2")
		api.put("b", "3")
		api.remove("c")
		synctest.Wait()
		for name, tc := range map[string]struct {
			opts []client.ListOption
			want []string
			err  string
		}{
			"all":             {want: []string{"a", "b", "d"}},
			"namespace":       {opts: []client.ListOption{client.InNamespace("test")}, want: []string{"a", "b", "d"}},
			"other namespace": {opts: []client.ListOption{client.InNamespace("other")}, want: []string{}},
			"labels":          {opts: []client.ListOption{client.MatchingLabels{"value": "3"}}, want: []string{"b", "d"}},
			"field":           {opts: []client.ListOption{client.MatchingFields{"value": "3"}}, want: []string{"b", "d"}},
			"former value":    {opts: []client.ListOption{client.MatchingFields{"value": "1"}}, want: []string{}},
			"two fields": {
				opts: []client.ListOption{client.MatchingFields{"value": "3", "name": "b"}}, want: []string{"b"},
			},
			"field elsewhere": {
				opts: []client.ListOption{client.MatchingFields{"value": "3"}, client.InNamespace("other")}, want: []string{},
			},
			"not indexed": {
				opts: []client.ListOption{client.MatchingFields{"other": "3"}}, err: "field other is not indexed",
			},
			"other than": {
				opts: []client.ListOption{client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("value", "3")}},
				err:  "supports only equality in field selectors",
			},
			"pages": {opts: []client.ListOption{client.Continue("here")}, err: "does not support paged lists"},
		} {
			list := &corev1.ConfigMapList{}
			err := informer.List(t.Context(), list, tc.opts...)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: error %v, want one with %q", name, err, tc.err)
				}
				continue
			}
			names := []string{}
			for _, cm := range list.Items {
				names = append(names, cm.Name)
			}
			slices.Sort(names)
			if diff := cmp.Diff(tc.want, names); diff != "" || err != nil {
				t.Errorf("%s: error %v, (-want +got):\n%s", name, err, diff)
			}
		}
		if n := len(listed(t, informer, client.Limit(2))); n != 2 {
			t.Errorf("%d objects with a limit of 2", n)
		}
	})
}

func TestCustomCache_CountsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errorsBefore, readsBefore := apitest.Counted(t, "trueup_informer_store_errors_total", nil),
			apitest.Counted(t, "trueup_informer_live_reads_total", nil)
		api := newTinyAPI()
		api.put("a", "1")
		informer := running(t, api, failing{})
		got(t, informer, "a")
		if after := apitest.Counted(t, "trueup_informer_store_errors_total", nil); after <= errorsBefore {
			t.Errorf("%v failures, there were %v before", after, errorsBefore)
		}
		if after := apitest.Counted(t, "trueup_informer_live_reads_total", nil); after != readsBefore+1 {
			t.Errorf("%v reads from the API server, want one more than %v", after, readsBefore)
		}
	})
}
