// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// maxSize limits the bytes of the program of the README for linux/amd64. One that only starts a manager of
// controller-runtime has 45 MB. A reflect.Type that is embedded, or a call of go-cmp, makes it 13 MB larger: with
// either, the linker keeps all methods of all types of Kubernetes.
const maxSize = 50_000_000

// TestHowLargeIsASmallController links the program of the README.
func TestHowLargeIsASmallController(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles and links a program without the race detector, which takes up to a minute")
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("other systems have other sizes")
	}
	program := filepath.Join(t.TempDir(), "quickstart")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../../examples/quickstart")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxSize {
		t.Errorf("%d bytes, want at most %d: see what -ldflags=-dumpdep marks with ReflectMethod", info.Size(), maxSize)
	}
}
