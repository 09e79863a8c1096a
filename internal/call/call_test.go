// SPDX-License-Identifier: Apache-2.0

package call_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/internal/call"
)

const whatToDo = `, which package call does not know: add a Verb, a method of caller or of subresource, a case of Do,
and the options to DryRun and insert; then read the functions that are passed to NewClient`

// argument returns an argument of a type for a method of a client.
func argument(t *testing.T, method string, of reflect.Type, at int) reflect.Value {
	t.Helper()
	for _, value := range []any{
		t.Context(),
		client.ObjectKey{Namespace: "ns", Name: "key"},
		client.RawPatch(types.MergePatchType, []byte(method)),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: method + string(rune('0'+at))}}, &corev1.ConfigMapList{},
		client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{}),
		client.DryRunAll, client.FieldOwner(method), client.InNamespace(method), &client.GetOptions{},
		&client.SubResourceGetOptions{},
	} {
		if reflect.TypeOf(value).AssignableTo(of) {
			return reflect.ValueOf(value)
		}
	}
	t.Fatalf("%s has an argument of type %s%s", method, of, whatToDo)
	return reflect.Value{}
}

// recorder returns a client that records the names and the arguments of its calls.
func recorder(record func(name string, args []reflect.Value)) client.WithWatch {
	funcs := interceptor.Funcs{}
	for field, value := range reflect.ValueOf(&funcs).Elem().Fields() {
		if field.Name == "SubResource" || field.Name == "Watch" {
			continue
		}
		value.Set(reflect.MakeFunc(field.Type, func(in []reflect.Value) []reflect.Value {
			record(field.Name, append(in[:1:1], in[2:]...)) // without the client
			return []reflect.Value{reflect.Zero(field.Type.Out(0))}
		}))
	}
	return interceptor.NewClient(nil, funcs)
}

// TestEachMethodOfClientsIsCarriedUnchanged fails if an interface of controller-runtime has a method that this package
// does not know, or if an argument is lost.
func TestEachMethodOfClientsIsCarriedUnchanged(t *testing.T) {
	var gotName string
	var got []reflect.Value
	inner := recorder(func(name string, args []reflect.Value) { gotName, got = name, args })
	var made call.Call
	outer := call.NewClient(inner, func(ctx context.Context, c call.Call) error {
		made = c
		return c.Do(ctx, inner)
	})
	verbs := map[call.Verb]bool{}
	for _, through := range []struct {
		of             reflect.Type
		client         any
		prefix, subres string
	}{
		{reflect.TypeFor[client.Client](), outer, "", ""},
		{reflect.TypeFor[client.Reader](), call.NewReader(func(ctx context.Context, c call.Call) error {
			made = c
			return c.Read(ctx, inner)
		}), "", ""},
		{reflect.TypeFor[client.SubResourceWriter](), outer.Status(), "SubResource", "status"},
		{reflect.TypeFor[client.SubResourceClient](), outer.SubResource("scale"), "SubResource", "scale"},
		{reflect.TypeFor[client.SubResourceClient](), outer.SubResource(""), "SubResource", ""},
	} {
		for i := range through.of.NumMethod() {
			method := through.of.Method(i)
			if method.Type.NumIn() == 0 || method.Type.In(0) != reflect.TypeFor[context.Context]() {
				continue // a client of a subresource, or one of call.Kinds
			}
			args := []reflect.Value{}
			for at := range method.Type.NumIn() - 1 {
				args = append(args, argument(t, method.Name, method.Type.In(at), at))
			}
			options := reflect.MakeSlice(method.Type.In(len(args)), 0, 1)
			args = append(args, reflect.Append(options, argument(t, method.Name, options.Type().Elem(), 0)))
			gotName, got = "", nil
			reflect.ValueOf(through.client).MethodByName(method.Name).CallSlice(args)

			want := args
			if through.prefix != "" {
				want = append([]reflect.Value{args[0], reflect.ValueOf(through.subres)}, args[1:]...)
			}
			if gotName != through.prefix+method.Name {
				t.Errorf("%s.%s arrives as %q%s", through.of, method.Name, gotName, whatToDo)
				continue
			}
			if len(got) != len(want) {
				t.Errorf("%s.%s: %d arguments arrive, want %d", through.of, method.Name, len(got), len(want))
				continue
			}
			for at, arg := range want {
				if !reflect.DeepEqual(got[at].Interface(), arg.Interface()) {
					t.Errorf("%s.%s, argument %d (-want +got):\n-%v\n+%v", through.of, method.Name, at, arg, got[at])
				}
			}
			if made.OfSubresource() != (through.prefix != "") {
				t.Errorf("%s.%s: OfSubresource = %t", through.of, method.Name, made.OfSubresource())
			}
			if made.Verb == "" {
				t.Errorf("%s.%s has no verb%s", through.of, method.Name, whatToDo)
			}
			verbs[made.Verb] = true
		}
	}
	if len(verbs) != 8 {
		t.Errorf("the methods have the verbs %v", verbs)
	}
}

// Clients that can watch, and clients of subresources, have methods that are not calls of this package.
func TestWhichMethodsAreNotCalls(t *testing.T) {
	got := map[string][]string{}
	for _, of := range []reflect.Type{reflect.TypeFor[client.WithWatch](), reflect.TypeFor[client.SubResourceClient]()} {
		for i := range of.NumMethod() {
			method := of.Method(i)
			known := method.Type.NumIn() > 0 && method.Type.In(0) == reflect.TypeFor[context.Context]() && method.Name != "Watch"
			if _, isKind := reflect.TypeFor[call.Kinds]().MethodByName(method.Name); !known && !isKind {
				got[of.Name()] = append(got[of.Name()], method.Name)
			}
		}
	}
	if diff := cmp.Diff(map[string][]string{"WithWatch": {"Status", "SubResource", "Watch"}}, got); diff != "" {
		t.Errorf("methods%s (-want +got):\n%s", whatToDo, diff)
	}
}

func TestWhatDoesACallSayOfItsOptions(t *testing.T) {
	obj, body := &corev1.ConfigMap{}, &corev1.Secret{}
	type said struct {
		DryRun          []string
		Written         client.Object
		IsRead, IsApply bool
		Subject         any
	}
	dry := []string{metav1.DryRunAll}
	merge, apply := client.RawPatch(types.MergePatchType, nil), client.RawPatch(types.ApplyPatchType, nil)
	for name, tc := range map[string]struct {
		do   func(ctx context.Context, c client.Client) error
		want said
	}{
		"get": {
			func(ctx context.Context, c client.Client) error { return c.Get(ctx, client.ObjectKey{}, obj) },
			said{Written: obj, IsRead: true, Subject: obj},
		},
		"create": {
			func(ctx context.Context, c client.Client) error { return c.Create(ctx, obj, client.DryRunAll) },
			said{DryRun: dry, Written: obj, Subject: obj},
		},
		"update": {
			func(ctx context.Context, c client.Client) error { return c.Update(ctx, obj, client.DryRunAll) },
			said{DryRun: dry, Written: obj, Subject: obj},
		},
		"patch": {
			func(ctx context.Context, c client.Client) error { return c.Patch(ctx, obj, merge, client.DryRunAll) },
			said{DryRun: dry, Written: obj, Subject: obj},
		},
		"patch that applies": {
			func(ctx context.Context, c client.Client) error { return c.Patch(ctx, obj, apply) },
			said{Written: obj, Subject: obj, IsApply: true},
		},
		"apply": {
			func(ctx context.Context, c client.Client) error { return c.Apply(ctx, nil, client.DryRunAll) },
			said{DryRun: dry, IsApply: true},
		},
		"delete": {
			func(ctx context.Context, c client.Client) error { return c.Delete(ctx, obj, client.DryRunAll) },
			said{DryRun: dry, Written: obj, Subject: obj},
		},
		"delete all": {
			func(ctx context.Context, c client.Client) error { return c.DeleteAllOf(ctx, obj, client.DryRunAll) },
			said{DryRun: dry, Written: obj, Subject: obj},
		},
		"create a subresource": {
			func(ctx context.Context, c client.Client) error {
				return c.SubResource("eviction").Create(ctx, obj, body, client.DryRunAll)
			},
			said{DryRun: dry, Written: obj, Subject: obj},
		},
		"update the status": {
			func(ctx context.Context, c client.Client) error { return c.Status().Update(ctx, obj, client.DryRunAll) },
			said{DryRun: dry, Written: obj, Subject: obj},
		},
		"update the body of a subresource": {
			func(ctx context.Context, c client.Client) error {
				return c.SubResource("scale").Update(ctx, obj, client.WithSubResourceBody(body))
			},
			said{Written: body, Subject: obj},
		},
		"patch the body of a subresource": {
			func(ctx context.Context, c client.Client) error {
				return c.SubResource("scale").Patch(ctx, obj, merge, client.WithSubResourceBody(body), client.DryRunAll)
			},
			said{DryRun: dry, Written: body, Subject: obj},
		},
		"apply the status": {
			func(ctx context.Context, c client.Client) error { return c.Status().Apply(ctx, nil, client.DryRunAll) },
			said{DryRun: dry, IsApply: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got said
			c := call.NewClient(nil, func(_ context.Context, c call.Call) error {
				got = said{DryRun: c.DryRun(), Written: c.Written(), IsRead: c.IsRead(), IsApply: c.IsApply()}
				if subject := c.Subject(); subject != nil {
					got.Subject = subject
				}
				c.Append(client.DryRunAll)
				if !c.IsRead() && !cmp.Equal(c.DryRun(), dry) && !cmp.Equal(c.DryRun(), append(dry, dry...)) {
					t.Errorf("with Append, the dry runs are %v", c.DryRun())
				}
				return nil
			})
			if err := tc.do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the call says (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhichOptionWins(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(c *call.Call)
		want   string
	}{
		"unchanged":       {func(*call.Call) {}, "caller"},
		"prepended":       {func(c *call.Call) { c.Prepend(client.FieldOwner("added")) }, "caller"},
		"appended":        {func(c *call.Call) { c.Append(client.FieldOwner("added")) }, "added"},
		"not of the verb": {func(c *call.Call) { c.Append(client.InNamespace("added")) }, "caller"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := append(make([]client.CreateOption, 0, 2), client.FieldOwner("caller"))
			got := ""
			c := call.NewClient(nil, func(_ context.Context, c call.Call) error {
				tc.change(&c)
				got = (&client.CreateOptions{}).ApplyOptions(call.Options[client.CreateOption](&c)).FieldManager
				return nil
			})
			if err := c.Create(t.Context(), &corev1.ConfigMap{}, opts...); err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("the field owner is %q, want %q", got, tc.want)
			}
			if opts = opts[:2]; opts[1] != nil {
				t.Error("the options of the caller have changed")
			}
		})
	}
}

func TestDoRefusesUnknownCalls(t *testing.T) {
	for _, c := range []call.Call{{}, {Verb: call.Delete, Subresource: "status"}, {Verb: "watch"}} {
		if err := c.Do(t.Context(), recorder(nil)); err == nil || !strings.Contains(err.Error(), "has no call with verb") {
			t.Errorf("%q of %q: error %v", c.Verb, c.Subresource, err)
		}
	}
}

func TestReadsAllocateNothing(t *testing.T) {
	inner := call.NewReader(func(context.Context, call.Call) error { return nil })
	outer := call.NewClient(nil, func(ctx context.Context, c call.Call) error { return c.Read(ctx, inner) })
	ctx, obj, list := t.Context(), &corev1.ConfigMap{}, &corev1.ConfigMapList{}
	gets, lists := []client.GetOption{&client.GetOptions{}}, []client.ListOption{client.InNamespace("ns")}
	if n := testing.AllocsPerRun(100, func() {
		if outer.Get(ctx, client.ObjectKey{}, obj, gets...) != nil || outer.List(ctx, list, lists...) != nil {
			t.Error("a read failed")
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// Tests of users compare configs, which have a client and a reader.
func TestClientsAreComparable(t *testing.T) {
	do := func(context.Context, call.Call) error { return nil }
	c, r := call.NewClient(nil, do), call.NewReader(do)
	for name, pair := range map[string][2]any{
		"client": {c, call.NewClient(nil, do)}, "reader": {r, call.NewReader(do)},
		"subresource": {c.Status(), c.Status()},
	} {
		if same := pair[0]; same != pair[0] || pair[0] == pair[1] {
			t.Errorf("%s: not equal to itself, or equal to another one", name)
		}
	}
}
