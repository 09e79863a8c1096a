// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"
	"os"
	"strings"

	"github.com/fatih/color"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	"trueup.dev/testing/internal/paths"
)

// Differ compares expectations with observations. Each method returns a text with the difference, or "" if there is
// none.
//
// Embed [DefaultDiffer] to change some comparisons and keep the others. Cases that run in parallel call a Differ
// concurrently.
type Differ interface {
	// Result compares the results of reconcilers.
	Result(expected, actual reconcilers.Result) string
	// TrackRequest compares tracked references.
	TrackRequest(expected, actual TrackRequest) string
	// Event compares recorded events.
	Event(expected, actual Event) string
	// ApplyRef compares server-side applies, of resources and of their status.
	ApplyRef(expected, actual ApplyRef) string
	// PatchRef compares patches, of resources and of their status.
	PatchRef(expected, actual PatchRef) string
	// DeleteRef compares deletions.
	DeleteRef(expected, actual DeleteRef) string
	// DeleteCollectionRef compares deletions of collections.
	DeleteCollectionRef(expected, actual DeleteCollectionRef) string
	// StashedValue compares the values stashed under a key, which may be of any type.
	StashedValue(expected, actual any, key stash.Key) string
	// Resource compares the resource after the call of a subreconciler.
	Resource(expected, actual client.Object) string
	// ResourceStatusUpdate compares updates of a status.
	ResourceStatusUpdate(expected, actual client.Object) string
	// ResourceUpdate compares updates.
	ResourceUpdate(expected, actual client.Object) string
	// ResourceCreate compares creations.
	ResourceCreate(expected, actual client.Object) string
	// WebhookResponse compares the responses of admission webhooks.
	WebhookResponse(expected, actual admission.Response) string
}

// DefaultDiffer is the Differ of cases without one.
//
//   - It ignores unexported fields in values that can be of any type: objects, stashed values and webhook responses.
//   - Objects and stashed values: a nil slice or map equals an empty one. It ignores the transition times of
//     conditions, and the API version and kind of typed objects.
//   - Created and updated objects, and stashed values: it also ignores the creation timestamp and the resource version.
//     It compares them in the resource of a subreconciler. A resource version after a patch of the finalizers is
//     accepted before the Differ is called.
//   - Status updates: it compares the status only. The identity of the object is compared without the Differ.
//   - Selectors and apply configurations are compared by their meaning.
//   - Everything else must be equal.
var DefaultDiffer Differ = defaultDiffer{}

type defaultDiffer struct{}

var (
	sameObject = cmp.Options{
		reconcilers.IgnoreAllUnexported, IgnoreLastTransitionTime, IgnoreTypeMeta, cmpopts.EquateEmpty(),
	}
	sameWrite  = cmp.Options{sameObject, IgnoreCreationTimestamp, IgnoreResourceVersion}
	sameStatus = cmp.Options{sameObject, onlyStatus}
)

func (defaultDiffer) Result(expected, actual reconcilers.Result) string {
	return cmp.Diff(expected, actual)
}

func (defaultDiffer) TrackRequest(expected, actual TrackRequest) string {
	return cmp.Diff(expected, actual, NormalizeLabelSelector)
}

func (defaultDiffer) Event(expected, actual Event) string {
	return cmp.Diff(expected, actual)
}

func (defaultDiffer) ApplyRef(expected, actual ApplyRef) string {
	return cmp.Diff(expected, actual, NormalizeApplyConfiguration)
}

func (defaultDiffer) PatchRef(expected, actual PatchRef) string {
	return cmp.Diff(patchText(expected), patchText(actual))
}

// patchText returns a ref with the patch as text. Without it, the difference of short slices of bytes shows numbers.
func patchText(ref PatchRef) any {
	type PatchRef struct {
		Group, Kind, Namespace, Name, SubResource string
		PatchType                                 types.PatchType
		Patch                                     string
	}
	return PatchRef{ref.Group, ref.Kind, ref.Namespace, ref.Name, ref.SubResource, ref.PatchType, string(ref.Patch)}
}

func (defaultDiffer) DeleteRef(expected, actual DeleteRef) string {
	return cmp.Diff(expected, actual)
}

func (defaultDiffer) DeleteCollectionRef(expected, actual DeleteCollectionRef) string {
	return cmp.Diff(expected, actual, NormalizeLabelSelector, NormalizeFieldSelector)
}

func (defaultDiffer) StashedValue(expected, actual any, _ stash.Key) string {
	return cmp.Diff(expected, actual, sameWrite)
}

func (defaultDiffer) Resource(expected, actual client.Object) string {
	return cmp.Diff(expected, actual, sameObject)
}

func (defaultDiffer) ResourceStatusUpdate(expected, actual client.Object) string {
	return cmp.Diff(expected, actual, sameStatus)
}

func (defaultDiffer) ResourceUpdate(expected, actual client.Object) string {
	return cmp.Diff(expected, actual, sameWrite)
}

func (defaultDiffer) ResourceCreate(expected, actual client.Object) string {
	return cmp.Diff(expected, actual, sameWrite)
}

func (defaultDiffer) WebhookResponse(expected, actual admission.Response) string {
	return cmp.Diff(expected, actual, reconcilers.IgnoreAllUnexported)
}

// The colors of a difference. They print plain text unless the environment variable COLOR_DIFF is set, to any value,
// when the program starts. The output need not be a terminal: that of `go test` never is.
var (
	// DiffAddedColor is the color of lines that were observed and not expected.
	DiffAddedColor = diffColor(color.FgGreen)
	// DiffRemovedColor is the color of lines that were expected and not observed.
	DiffRemovedColor = diffColor(color.FgRed)
)

func diffColor(attribute color.Attribute) *color.Color {
	c := color.New(attribute)
	if _, ok := os.LookupEnv("COLOR_DIFF"); ok {
		c.EnableColor()
	} else {
		c.DisableColor()
	}
	return c
}

// ColorizeDiff colors the lines of a difference as cmp.Diff returns it: those that start with + in [DiffAddedColor],
// those that start with - in [DiffRemovedColor]. Every line ends with a newline, also the last one.
func ColorizeDiff(diff string) string {
	var colored strings.Builder
	for line := range strings.SplitSeq(diff, "\n") {
		switch {
		case strings.HasPrefix(line, "+"):
			line = DiffAddedColor.Sprint(line)
		case strings.HasPrefix(line, "-"):
			line = DiffRemovedColor.Sprint(line)
		}
		colored.WriteString(line)
		colored.WriteString("\n")
	}
	return colored.String()
}

// Options for a custom [Differ]. They ignore fields that differ in each run of a test.
var (
	// IgnoreLastTransitionTime ignores the transition times of conditions: fields named LastTransitionTime, and
	// lastTransitionTime in unstructured content.
	IgnoreLastTransitionTime = cmp.FilterPath(func(path cmp.Path) bool {
		field, ok := path.Last().(cmp.StructField)
		return ok && field.Name() == "LastTransitionTime" || paths.EndsWithKeys(path, "lastTransitionTime")
	}, cmp.Ignore())

	// IgnoreTypeMeta ignores the API version and kind of typed objects, which the Go type implies. It does not ignore the
	// fields of unstructured objects.
	IgnoreTypeMeta = cmp.FilterPath(func(path cmp.Path) bool {
		return paths.IsFieldOf[metav1.TypeMeta](path, "APIVersion", "Kind")
	}, cmp.Ignore())

	// IgnoreCreationTimestamp ignores the creation timestamp of objects, typed or unstructured.
	IgnoreCreationTimestamp = cmp.FilterPath(func(path cmp.Path) bool {
		return paths.IsFieldOf[metav1.ObjectMeta](path, "CreationTimestamp") ||
			paths.EndsWithKeys(path, "metadata", "creationTimestamp")
	}, cmp.Ignore())

	// IgnoreResourceVersion ignores the resource version of objects, typed or unstructured.
	IgnoreResourceVersion = cmp.FilterPath(func(path cmp.Path) bool {
		return paths.IsFieldOf[metav1.ObjectMeta](path, "ResourceVersion") ||
			paths.EndsWithKeys(path, "metadata", "resourceVersion")
	}, cmp.Ignore())

	// onlyStatus ignores all of an object except for its status.
	onlyStatus = cmp.FilterPath(paths.IsOutsideStatus, cmp.Ignore())
)

// Options for a custom [Differ]. They compare values without exported fields, or with several forms, by their meaning.
var (
	// NormalizeLabelSelector compares label selectors by their text. A nil selector equals one that selects
	// everything.
	NormalizeLabelSelector = cmp.Transformer("labels.Selector", selectorText[labels.Selector])

	// NormalizeFieldSelector compares field selectors by their text. A nil selector equals one that selects
	// everything.
	NormalizeFieldSelector = cmp.Transformer("fields.Selector", selectorText[fields.Selector])

	// NormalizeApplyConfiguration compares apply configurations by their JSON form, which clients send to the API server.
	NormalizeApplyConfiguration = cmp.Transformer("runtime.ApplyConfiguration", func(ac runtime.ApplyConfiguration) any {
		var content any
		data, err := json.Marshal(ac)
		if err == nil {
			err = json.Unmarshal(data, &content)
		}
		if err != nil {
			return fmt.Sprintf("%T has no JSON form: %v", ac, err)
		}
		return content
	})
)

// selectorText returns nil for selectors that select everything. The text of a selector that selects nothing is empty.
func selectorText[S interface {
	comparable
	Empty() bool
	String() string
}](s S) *string {
	var none S
	if s == none || s.Empty() {
		return nil
	}
	return new(s.String())
}
