package reports

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

//go:embed schema/report-v1.schema.json
var schemaJSON []byte

//go:embed schema/proof-v1.schema.json
var proofSchemaJSON []byte

// SchemaJSON returns the JSON Schema (draft 2020-12) of report.json.
func SchemaJSON() []byte { return slices.Clone(schemaJSON) }

// ProofSchemaJSON returns the JSON Schema (draft 2020-12) of prove.json.
func ProofSchemaJSON() []byte { return slices.Clone(proofSchemaJSON) }

// The schemas, compiled once. They are part of the program: that they compile
// is shown by a test, and a failure is a fault of the program.
var (
	compiled      = sync.OnceValue(func() *jsonschema.Schema { return compile(Schema, schemaJSON) })
	compiledProof = sync.OnceValue(func() *jsonschema.Schema { return compile(ProofSchema, proofSchemaJSON) })
)

func compile(id string, schema []byte) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		panic(fmt.Errorf("reports: embedded schema: %w", err))
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // nothing is ever loaded from elsewhere
	if err := c.AddResource(id, doc); err != nil {
		panic(fmt.Errorf("reports: embedded schema: %w", err))
	}
	return c.MustCompile(id)
}

// validate holds the encoded report against the schema, and against the one
// rule that a schema cannot say: ids of trials are unique.
func validate(data []byte) error {
	doc, err := obeys(compiled(), data)
	if err != nil {
		return err
	}
	seen := map[string]int{}
	for i, t := range doc.(map[string]any)["trials"].([]any) {
		id := t.(map[string]any)["id"].(string) // a string there: the schema says so
		if first, ok := seen[id]; ok {
			return fmt.Errorf("trials/%d/id: %s stands at trials/%d already", i, Harmless(id), first)
		}
		seen[id] = i
	}
	return nil
}

// obeys holds a document against a schema and returns it parsed.
func obeys(schema *jsonschema.Schema, data []byte) (any, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if err := schema.Validate(doc); err != nil {
		var invalid *jsonschema.ValidationError
		if errors.As(err, &invalid) {
			return nil, faults(invalid)
		}
		return nil, err
	}
	return doc, nil
}

// maxFaults bounds how many faults one error names.
const maxFaults = 8

// faults turns the validator's tree into one error a fault, each with the path
// of its field.
func faults(e *jsonschema.ValidationError) error {
	printer := message.NewPrinter(language.English)
	var out []error
	more := 0
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, c := range e.Causes {
			walk(c)
		}
		switch {
		case len(e.Causes) > 0:
		case len(out) == maxFaults:
			more++
		default:
			path := strings.Join(e.InstanceLocation, "/")
			if path == "" {
				path = "report"
			}
			out = append(out, fmt.Errorf("%s: %s", short(path, maxNoteShown), short(e.ErrorKind.LocalizedString(printer), 2*maxNoteShown)))
		}
	}
	walk(e)
	if more > 0 {
		out = append(out, fmt.Errorf("... and %d more", more))
	}
	return errors.Join(out...)
}
