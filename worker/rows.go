package worker

import (
	"encoding/binary"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// rowScanner scans rows of the types that events come in as pgx does, in a third of the time: ids go through no text, and what is pointed to
// is allocated for many rows at once.
type rowScanner struct {
	ids     []uuid.UUID
	numbers []int64
	texts   []string
	bytes   []byte
}

// scan is rows.Scan.
func (s *rowScanner) scan(rows pgx.Rows, dest []any) error {
	fields, values := rows.FieldDescriptions(), rows.RawValues()
	if len(dest) != len(values) {
		return rows.Scan(dest...)
	}
	for i, d := range dest {
		if !s.scanValue(fields[i], values[i], d) {
			return rows.Scan(dest...) // once more, all of them
		}
	}
	return nil
}

// scanValue returns whether it could.
func (s *rowScanner) scanValue(field pgconn.FieldDescription, value []byte, dest any) bool {
	isBinary := field.Format == pgx.BinaryFormatCode
	switch d := dest.(type) {
	case *int64:
		if value == nil || !isBinary || field.DataTypeOID != pgtype.Int8OID {
			return false
		}
		*d = int64(binary.BigEndian.Uint64(value))
	case **int64:
		if !isBinary || field.DataTypeOID != pgtype.Int8OID {
			return false
		}
		*d = nil
		if value != nil {
			*d = keep(&s.numbers, int64(binary.BigEndian.Uint64(value)))
		}
	case **uuid.UUID:
		if !isBinary || field.DataTypeOID != pgtype.UUIDOID {
			return false
		}
		*d = nil
		if value != nil {
			*d = keep(&s.ids, uuid.UUID(value))
		}
	case **bool:
		if !isBinary || field.DataTypeOID != pgtype.BoolOID {
			return false
		}
		*d = nil
		if value != nil {
			*d = new(value[0] == 1)
		}
	case **string:
		if field.DataTypeOID != pgtype.TextOID {
			return false
		}
		*d = nil
		if value != nil {
			*d = keep(&s.texts, string(value))
		}
	case *json.RawMessage:
		if isBinary || field.DataTypeOID != pgtype.JSONBOID {
			return false
		}
		*d = nil
		if value != nil {
			*d = s.copy(value)
		}
	default:
		return false
	}
	return true
}

const keptTogether = 256

func keep[T any](kept *[]T, value T) *T {
	if len(*kept) == cap(*kept) {
		*kept = make([]T, 0, keptTogether)
	}
	*kept = append(*kept, value)
	return &(*kept)[len(*kept)-1]
}

// copy copies what lies in the connection's buffer.
func (s *rowScanner) copy(value []byte) []byte {
	if len(value) > cap(s.bytes)-len(s.bytes) {
		s.bytes = make([]byte, 0, max(len(value), 64<<10))
	}
	start := len(s.bytes)
	s.bytes = append(s.bytes, value...)
	return s.bytes[start:len(s.bytes):len(s.bytes)]
}
