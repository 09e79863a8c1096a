// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/console"
	"trueup.dev/converge"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/graph"
	"trueup.dev/observe"
	"trueup.dev/observe/logs"
	"trueup.dev/plan"
	"trueup.dev/reconcilers"
)

// setUpSite is the door to writing a controller.
func setUpSite(ctx context.Context, mgr ctrl.Manager) error {
	type Website = websitev1.Website
	records := printedRecords{}
	// region door-write
	return (&reconcilers.ResourceReconciler[*Website]{
		Reconciler: reconcilers.Sequence[*Website]{
			ThemeReconciler(),         // reads a ConfigMap of another owner, and follows its changes
			RenderReconciler(),        // computes the pages, and passes them to the next step
			PagesReconciler(),         // creates, repairs and deletes a ConfigMap
			RecordReconciler(records), // publishes a DNS record, and withdraws it with a finalizer
		},
		Config: reconcilers.NewConfig(mgr, &Website{}, 10*time.Hour),
	}).SetupWithManager(ctx, mgr)
	// endregion
}

func setUpFixed(mgr manager.Manager) error {
	return (&FixedReconciler{mgr.GetClient(), mgr.GetAPIReader()}).SetupWithManager(mgr)
}

// The door to proofs.
func TestFormatConverges(t *testing.T) {
	setUp := setUpFixed
	// region door-prove
	converge.Run(t, converge.Scenario{
		Scheme: scheme,
		For:    &corev1.PersistentVolumeClaim{},
		Setup:  setUp,                                                 // as in main
		World:  []converge.Actor{converge.Jobs(converge.BecomeReady)}, // simulates the controller of Jobs
		Steps:  converge.Lifecycle(dataClaim),                         // creates and deletes a claim
	})
	// endregion
}

// newManager is the door to operation.
func newManager(config *rest.Config) error {
	scheme, setUp := newScheme(), setUpSite
	// region door-operate
	plan.Main(scheme, setUp)  // for `trueup plan`: what would this version change in a cluster?
	graph.Main(scheme, setUp) // for `trueup graph` and `trueup rbac`: its reconcilers, and their role

	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	observe.Of(mgr).Add(logs.New(mgr.GetLogger(), logs.Options{})) // one line for each reconcile with an effect
	return console.AddToManager(mgr, console.Options{})            // pages on the metrics server, at /console/
	// endregion
}

func TestDoorToOperation(t *testing.T) {
	if err := newManager(&rest.Config{Host: "127.0.0.1:1"}); err != nil {
		t.Error(err)
	}
}

var picture = regexp.MustCompile(`!\[[^\]]+\]\(([^)]+)\)`)

// TestDoors checks that a stranger finds three short doors in the README, each with code and one picture, and finds the
// same code in the doc comment of the module.
func TestDoors(t *testing.T) {
	regions, readme := readRegions(t), readFile(t, "../README.md")
	comment := readFile(t, "../doc.go")
	for _, door := range []string{"write", "prove", "operate"} {
		code := regions["door-"+door]
		if lines := strings.Count(code, "\n"); lines < 5 || lines > 12 {
			t.Errorf("the door %q has %d lines of code, want about ten", door, lines)
		}
		title := strings.ToUpper(door[:1]) + door[1:]
		_, section, found := strings.Cut(readme, "\n## "+title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !found || !strings.Contains(section, "```go door-"+door+"\n") {
			t.Errorf("README.md has no section %q with the code of the door", title)
		}
		pictures := picture.FindAllStringSubmatch(section, -1)
		if len(pictures) != 1 {
			t.Errorf("the section %q has %d pictures, want 1", title, len(pictures))
		}
		for _, p := range pictures {
			if _, err := os.Stat(filepath.Join("..", p[1])); err != nil {
				t.Error(err)
			}
		}
		var indented strings.Builder
		for line := range strings.Lines(code) {
			indented.WriteString(strings.TrimRight("//\t"+line, "\t\n") + "\n")
		}
		if shown := indented.String(); !strings.Contains(comment, shown) {
			t.Errorf("doc.go does not have the code of the door %q:\n%s", door, shown)
		}
	}
	if lines := strings.Count(readme, "\n"); lines > 150 {
		t.Errorf("README.md has %d lines, want at most 150", lines)
	}
}

// TestTreeIsDrawn checks that the picture of the door to writing shows each reconciler. To draw it again, write
// Graph.DOT to a file, and call `go run trueup.dev/graph/svg < file > docs/readme/tree.svg`.
func TestTreeIsDrawn(t *testing.T) {
	described, err := graph.Record(t.Context(), newScheme(), setUpSite)
	if err != nil {
		t.Fatal(err)
	}
	drawn := html.UnescapeString(readFile(t, "readme/tree.svg"))
	labels := regexp.MustCompile(`label="([^"]+)"`).FindAllStringSubmatch(described.DOT(), -1)
	if len(labels) < 10 {
		t.Errorf("the graph has only %d labels", len(labels))
	}
	for _, label := range labels {
		for _, line := range strings.Split(label[1], `\n`) {
			if !strings.Contains(drawn, ">"+line+"</text>") {
				t.Errorf("docs/readme/tree.svg does not show %q", line)
			}
		}
	}
}
